"""What readers see: databases, tables, and the location of each partition."""

from collections.abc import Collection

from eventlake.aws.access import AwsAccess
from eventlake.catalog import sync_reports
from eventlake.catalog.base import Catalog
from eventlake.catalog.local import LocalCatalog
from eventlake.settings.models import Limits, Overridable, Settings
from eventlake.storage import Storage


def open_catalog(settings: Settings, storage: Storage, of: Overridable | None = None) -> Catalog:
    """The catalog of the lake, or of one of its sources. Opening does not read or write."""
    if settings.catalog != "glue":
        return LocalCatalog(storage)
    # Imported late: botocore is slow to load, and most lakes do not use it.
    from eventlake.catalog.glue import GlueCatalog

    named = {source.database for source in settings.sources} | {sync_reports.DATABASE}
    asked = of or settings
    return GlueCatalog(
        settings.storage_uri, AwsAccess.of(asked), asked.glue_catalog_id, tuple(sorted(named))
    )


def room(catalog: Catalog, names: Collection[str] | None, limits: Limits) -> int:
    """The number of tables that may be added to a database with these tables.

    None: the database does not exist, and may itself exceed a limit.
    """
    if names is not None:
        return max(0, limits.catalog_tables - len(names))
    return limits.catalog_tables if catalog.count_databases() < limits.catalog_databases else 0
