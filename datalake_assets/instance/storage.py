"""Where Dagster keeps its runs and events: in Postgres if a variable says where, else in SQLite."""

import os
from typing import Any

from dagster._config.config_schema import UserConfigSchema
from dagster._core.storage.base_storage import DagsterStorage
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._serdes import ConfigurableClass, ConfigurableClassData
from sqlalchemy.exc import DBAPIError

from datalake_assets.instance.home import URL_VARIABLE, VARIABLE
from eventlake.rules.errors import ServiceTrouble, UsageError

_DRIVER = "postgresql+psycopg2"
_KINDS = ("postgresql", "postgres", _DRIVER)


class Bookkeeping(DagsterStorage, ConfigurableClass):
    """What `dagster.yaml` names as storage, so that one file serves laptop and production.

    Dagster itself can take a URL from the environment, but not the choice of the storage. There
    is never an instance of this class: it makes one of Dagster's own.
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
        # Named, since SQLAlchemy 2.1 takes another driver by default than dagster-postgres has.
        return DagsterPostgresStorage(f"{_DRIVER}://{place}", inst_data=inst_data)
    except (DagsterPostgresException, DBAPIError) as error:
        where = place.rpartition("@")[2]
        said = str(error.__cause__ or error).splitlines()[0]
        raise ServiceTrouble(
            f"Dagster's database cannot be used ({where}, from ${URL_VARIABLE}): {said}. See "
            "whether Postgres runs there, and whether user, password and database are right."
        ) from error


def _sqlite(inst_data: ConfigurableClassData | None) -> DagsterStorage:
    home = os.environ.get(VARIABLE)
    if not home:
        raise UsageError(
            f"Neither ${URL_VARIABLE} nor ${VARIABLE} is set, so there is no place for "
            "Dagster's runs. Set one of them, or use the `datalake` command, which does."
        )
    # Where Dagster puts it by itself: runs of before are found again.
    return DagsterSqliteStorage.from_local(home, inst_data=inst_data)
