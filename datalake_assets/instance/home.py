"""The home of Dagster's own files: `$DAGSTER_HOME`, else `.dagster` beside `lake.yaml`."""

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from eventlake.rules.errors import ServiceTrouble, UsageError
from eventlake.settings.models import Settings
from eventlake.storage import LocalStorage
from eventlake.storage.documents import decode, encode

if TYPE_CHECKING:
    import dagster as dg

VARIABLE = "DAGSTER_HOME"
URL_VARIABLE = "DAGSTER_PG_URL"
"""`postgresql://user:password@host:port/database`: it contains a password, so no file has it."""
_INSTANCE_FILE = Path(__file__).parents[1] / "dagster.yaml"
_NAME, _SHIPPED, _LOCK = "dagster.yaml", ".dagster.yaml.shipped", "storage.lock"
_POSTGRES = b"""
# Written because $DAGSTER_PG_URL is set; without the variable it is removed again.
storage:
  postgres:
    postgres_url: {env: DAGSTER_PG_URL}
"""
_OLD_STORAGE = re.compile(
    rb"^storage:\n  custom:\n    module: datalake_assets\S*\n    class: Bookkeeping\n"
    rb"    config: {}\n",
    re.MULTILINE,
)
"""The storage of earlier releases, a class of our own that chose between SQLite and Postgres."""
_DRIVER = "postgresql+psycopg2"
_KINDS = ("postgresql", "postgres", _DRIVER)


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
    if settings.private_files and home.stat().st_uid == os.getuid():
        home.chmod(0o700)  # Dagster's databases and logs are in it
    ensure_instance_file(home)
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


def ensure_instance_file(home: Path) -> None:
    """Install the file of this release; of an edited one, change only the storage."""
    url = _postgres_url()
    ours = _with_storage(_INSTANCE_FILE.read_bytes(), url)
    found, shipped = _read(home / _NAME), _read(home / _SHIPPED)
    wanted = {_NAME: ours, _SHIPPED: ours}
    if found is not None and found not in (ours, shipped):
        wanted = {_NAME: _with_storage(found, url)}
    for name, content in wanted.items():
        if content != _read(home / name):
            LocalStorage(str(home)).write(name, content)  # atomic: other processes read it
    if url is not None:
        os.environ[URL_VARIABLE] = url


def is_in_sqlite(home: Path) -> bool:
    """Whether Dagster's databases are where it puts them by itself."""
    own = re.search(rb"^(schedule_)?storage:", _read(home / _NAME) or b"", re.MULTILINE)
    return not (own or os.environ.get(URL_VARIABLE))


def _with_storage(file: bytes, url: str | None) -> bytes:
    """The file with Postgres if there is a URL, else with Dagster's SQLite; a storage that someone
    else has written stays."""
    file = _OLD_STORAGE.sub(b"", file.replace(_POSTGRES, b""))
    is_written = re.search(rb"^storage:", file, re.MULTILINE)
    return file if url is None or is_written else file + _POSTGRES


def _postgres_url() -> str | None:
    """The URL with its driver: that of dagster-postgres is not the default of SQLAlchemy 2.1."""
    url = os.environ.get(URL_VARIABLE)
    if not url:
        return None
    kind, _, place = url.partition("://")
    if kind not in _KINDS:
        raise UsageError(
            f"${URL_VARIABLE} does not begin with postgresql:// (it may hold a password, so it is "
            "not shown here). Set it to postgresql://user:password@host:port/database, or unset "
            "it to keep Dagster's runs in SQLite."
        )
    if find_spec("dagster_postgres") is None:
        raise UsageError(
            f"${URL_VARIABLE} is set, but dagster-postgres is not installed. Install the extra "
            "`postgres` (pip install 'datalake[postgres]'), or unset the variable."
        )
    return f"{_DRIVER}://{place}"


@contextmanager
def opened_instance(home: Path, **overrides: object) -> "Iterator[dg.DagsterInstance]":
    """The instance of a home, which several processes may open at the same time."""
    import dagster as dg

    # If two processes created the databases of SQLite at the same time, both would write the
    # version, and Dagster would refuse to open them.
    with open(home / _LOCK, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            # The only public way to an instance with overrides; nothing about it is temporary.
            instance = dg.DagsterInstance.local_temp(str(home), overrides)
        except Exception as error:
            url = os.environ.get(URL_VARIABLE)
            if not url:
                raise
            where = url.rpartition("@")[2]
            said = str(error.__cause__ or error).splitlines()[0]
            raise ServiceTrouble(
                f"Dagster's database cannot be used ({where}, from ${URL_VARIABLE}): {said}. Check "
                "that Postgres runs there, and that user, password and database are right."
            ) from error
    with instance:
        yield instance


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
