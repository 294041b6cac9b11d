"""The storage of Dagster's runs and events: Postgres if a variable is set, else SQLite."""

import fcntl
import os
from pathlib import Path
from typing import Any

from dagster._config.config_schema import UserConfigSchema
from dagster._core.storage.base_storage import DagsterStorage
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._serdes import ConfigurableClass, ConfigurableClassData
from sqlalchemy.exc import DBAPIError

from datalake_assets.instance.home import URL_VARIABLE, VARIABLE
from eventlake.rules.errors import ServiceTrouble, UsageError

_DRIVER = "postgresql+psycopg2"
_LOCK = "storage.lock"
_KINDS = ("postgresql", "postgres", _DRIVER)


class Bookkeeping(DagsterStorage, ConfigurableClass):
    """The storage class of `dagster.yaml`, so that one file serves laptop and production.

    Dagster can read a URL from the environment, but not the choice of the storage. This class has
    no instances: it creates one of Dagster's own classes.
    """

    @classmethod
    def config_type(cls) -> UserConfigSchema:
        return {}

    @classmethod
    def from_config_value(  # type: ignore[override]  # Dagster asks only for a DagsterStorage
        cls, inst_data: ConfigurableClassData | None, config_value: Any
    ) -> DagsterStorage:
        url = os.environ.get(URL_VARIABLE)
        return _postgres(url, inst_data) if url else _sqlite(inst_data)


def _postgres(url: str, inst_data: ConfigurableClassData | None) -> DagsterStorage:
    kind, _, place = url.partition("://")
    if kind not in _KINDS:
        raise UsageError(
            f"${URL_VARIABLE} does not begin with postgresql:// (it may hold a password, so it is "
            "not shown here). Set it to postgresql://user:password@host:port/database, or unset "
            "it to keep Dagster's runs in SQLite."
        )
    try:
        from dagster_postgres import DagsterPostgresStorage
        from dagster_postgres.utils import DagsterPostgresException
    except ImportError:
        raise UsageError(
            f"${URL_VARIABLE} is set, but dagster-postgres is not installed. Install the extra "
            "`postgres` (pip install 'datalake[postgres]'), or unset the variable."
        ) from None
    try:
        # Explicit, because the default driver of SQLAlchemy 2.1 is not the one of dagster-postgres.
        return DagsterPostgresStorage(f"{_DRIVER}://{place}", inst_data=inst_data)
    except (DagsterPostgresException, DBAPIError) as error:
        where = place.rpartition("@")[2]
        said = str(error.__cause__ or error).splitlines()[0]
        raise ServiceTrouble(
            f"Dagster's database cannot be used ({where}, from ${URL_VARIABLE}): {said}. Check "
            "that Postgres runs there, and that user, password and database are right."
        ) from error


def _sqlite(inst_data: ConfigurableClassData | None) -> DagsterStorage:
    home = os.environ.get(VARIABLE)
    if not home:
        raise UsageError(
            f"Neither ${URL_VARIABLE} nor ${VARIABLE} is set, so Dagster cannot store runs. "
            "Set one of them, or use the `datalake` command, which sets it."
        )
    # If two processes created the databases at the same time, both would write the version, and
    # Dagster would refuse to open them.
    with open(Path(home) / _LOCK, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # The same folder as without this class, so that earlier runs are found.
        return DagsterSqliteStorage.from_local(home, inst_data=inst_data)
