"""The catalog that the settings select."""

from collections.abc import Collection

from eventlake.aws.access import AwsAccess
from eventlake.catalog import sync_reports
from eventlake.catalog.base import Catalog
from eventlake.catalog.local import LocalCatalog
from eventlake.settings.models import Limits, Overridable, Settings
from eventlake.storage import Storage


def open_catalog(settings: Settings, storage: Storage, of: Overridable | None = None) -> Catalog:
    """As all of the lake has it, or one of its sources; nothing is read or written by opening."""
    if settings.catalog != "glue":
        return LocalCatalog(storage)
    # Only now: most lakes have no use for botocore, which takes its time to load.
    from eventlake.catalog.glue import GlueCatalog

    named = {source.database for source in settings.sources} | {sync_reports.DATABASE}
    asked = of or settings
    return GlueCatalog(
        settings.storage_uri, AwsAccess.of(asked), asked.glue_catalog_id, tuple(sorted(named))
    )


def room(catalog: Catalog, names: Collection[str] | None, limits: Limits) -> int:
    """For how many tables beside those of these names a database has room.

    None is a database that is not there, and may itself be one too many.
    """
    if names is not None:
        return max(0, limits.catalog_tables - len(names))
    return limits.catalog_tables if catalog.count_databases() < limits.catalog_databases else 0
