"""The home of Dagster's own files: `$DAGSTER_HOME`, else `.dagster` beside `lake.yaml`."""

import fcntl
import os
from pathlib import Path

import msgspec

from eventlake.rules.errors import UsageError
from eventlake.settings.models import Settings
from eventlake.storage import LocalStorage
from eventlake.storage.documents import decode, encode

VARIABLE = "DAGSTER_HOME"
URL_VARIABLE = "DAGSTER_PG_URL"
"""`postgresql://user:password@host:port/database`: it contains a password, so no file has it."""
_INSTANCE_FILE = Path(__file__).parents[1] / "dagster.yaml"
_NAME, _SHIPPED = "dagster.yaml", ".dagster.yaml.shipped"
_STORAGE_MODULE = b"module: datalake_assets.instance.storage\n"


def home_of(settings: Settings) -> Path:
    """The path of the home, which may not exist."""
    given = os.environ.get(VARIABLE)
    home = Path(given) if given else settings.config_folder / ".dagster"
    return home.expanduser().absolute()


def leave_home() -> None:
    """Use the home beside the settings from now on: the demo has its own runs."""
    for variable in (VARIABLE, URL_VARIABLE):
        os.environ.pop(variable, None)


def ensure_home(settings: Settings) -> Path:
    """Create the home with its `dagster.yaml`, and set it in the environment."""
    home = home_of(settings)
    home.mkdir(parents=True, exist_ok=True)
    _ensure_instance_file(home)
    reserve_names(settings, home)
    os.environ[VARIABLE] = str(home)
    return home


_NAMES = "datalake/sources.json"


class _Reserved(msgspec.Struct, frozen=True):
    """The storage of each source in a home, by the source's name, which is in the keys of its
    assets. A copied home reserves nothing."""

    home: str = ""
    sources: dict[str, str] = {}


def reserve_names(settings: Settings, home: Path) -> None:
    """Refuse a source if another lake in this home has one of the same name: their runs and assets
    would be the same for Dagster."""
    found = _read(home / _NAMES)
    known = decode(found, _Reserved, str(home / _NAMES)) if found else _Reserved()
    own = settings.storage_uri
    others = {
        name: uri
        for name, uri in known.sources.items()
        if known.home == str(home) and uri != own and ("://" in uri or Path(uri).exists())
    }
    for source in settings.sources:
        if other := others.get(source.name):
            raise UsageError(
                f"Source {source.slug!r} of the lake in {own} has the same name as one of the lake "
                f"in {other}, and both use {home} as ${VARIABLE}: they would overwrite each "
                f"other's assets. Set ${VARIABLE} to another folder for one of them, or give the "
                f"source another slug. If the lake was moved, remove the source from "
                f"{home / _NAMES}."
            )
    reserved = _Reserved(str(home), others | {s.name: own for s in settings.sources})
    if reserved != known:
        (home / _NAMES).parent.mkdir(parents=True, exist_ok=True)
        LocalStorage(str(home)).write(_NAMES, encode(reserved))


def _ensure_instance_file(home: Path) -> None:
    """Install the file of this release; keep an edited one, except for names of moved modules."""
    ours = _INSTANCE_FILE.read_bytes()
    found, shipped = _read(home / _NAME), _read(home / _SHIPPED)
    wanted = {_NAME: ours, _SHIPPED: ours}
    if found is not None and found not in (ours, shipped):
        wanted = {_NAME: _moved(found)}
    for name, content in wanted.items():
        if content != _read(home / name):
            LocalStorage(str(home)).write(name, content)  # atomic: other processes read it


def _moved(file: bytes) -> bytes:
    """An edited file of an older release, with the current module of the storage class."""
    return file.replace(b"module: datalake_assets.bookkeeping\n", _STORAGE_MODULE)


def _read(file: Path) -> bytes | None:
    return file.read_bytes() if file.exists() else None


_FILE = "in_use.lock"


def claim(home: Path) -> bool:
    """Lock the home until this process ends, also after an exec; False: it is locked already."""
    handle = os.open(home / _FILE, os.O_RDWR | os.O_CREAT, 0o666)
    os.set_inheritable(handle, True)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return False
    return True


def is_claimed(home: Path) -> bool:
    """Whether a process has locked the home."""
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
