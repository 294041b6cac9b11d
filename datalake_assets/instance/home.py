"""Where Dagster keeps its own files: `$DAGSTER_HOME`, else `.dagster` beside `lake.yaml`."""

import fcntl
import os
from pathlib import Path

from eventlake.settings.models import Settings
from eventlake.storage import LocalStorage

VARIABLE = "DAGSTER_HOME"
URL_VARIABLE = "DAGSTER_PG_URL"
"""`postgresql://user:password@host:port/database`: it holds a password, so it is in no file."""
_INSTANCE_FILE = Path(__file__).parents[1] / "dagster.yaml"
_NAME, _SHIPPED = "dagster.yaml", ".dagster.yaml.shipped"
_STORAGE_MODULE = b"module: datalake_assets.instance.storage\n"


def home_of(settings: Settings) -> Path:
    """Where the home is, or would be."""
    given = os.environ.get(VARIABLE)
    home = Path(given) if given else settings.config_folder / ".dagster"
    return home.expanduser().absolute()


def leave_home() -> None:
    """From now on the home is that beside the settings, with its own runs: for the demo."""
    for variable in (VARIABLE, URL_VARIABLE):
        os.environ.pop(variable, None)


def ensure_home(settings: Settings) -> Path:
    """A home that works: made, given its `dagster.yaml`, and put into the environment."""
    home = home_of(settings)
    home.mkdir(parents=True, exist_ok=True)
    _ensure_instance_file(home)
    os.environ[VARIABLE] = str(home)
    return home


def _ensure_instance_file(home: Path) -> None:
    """Install the file of this release; keep an edited one, but for modules that have moved."""
    ours = _INSTANCE_FILE.read_bytes()
    found, shipped = _read(home / _NAME), _read(home / _SHIPPED)
    wanted = {_NAME: ours, _SHIPPED: ours}
    if found is not None and found not in (ours, shipped):
        wanted = {_NAME: _moved(found)}
    for name, content in wanted.items():
        if content != _read(home / name):
            LocalStorage(str(home)).write(name, content)  # atomic: other processes read it


def _moved(file: bytes) -> bytes:
    """An edited file of an older release, with the storage class where it is now."""
    return file.replace(b"module: datalake_assets.bookkeeping\n", _STORAGE_MODULE)


def _read(file: Path) -> bytes | None:
    return file.read_bytes() if file.exists() else None


_FILE = "in_use.lock"


def claim(home: Path) -> bool:
    """Hold the home until this process ends, whatever program it becomes; False: another does."""
    handle = os.open(home / _FILE, os.O_RDWR | os.O_CREAT, 0o666)
    os.set_inheritable(handle, True)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return False
    return True


def is_claimed(home: Path) -> bool:
    """Whether somebody holds it now."""
    try:
        handle = os.open(home / _FILE, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
