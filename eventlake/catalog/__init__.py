"""What readers see: databases, tables, and the location of each partition."""

from collections.abc import Collection

from eventlake.aws.access import AwsAccess
from eventlake.catalog import sync_reports
from eventlake.catalog.base import Catalog
from eventlake.catalog.local import LocalCatalog
from eventlake.clouds import extra_packages
from eventlake.settings.models import Limits, Overridable, Settings
from eventlake.storage import Storage


def open_catalog(settings: Settings, storage: Storage, of: Overridable | None = None) -> Catalog:
    """The catalog of the lake, or of one of its sources. Opening does not read or write."""
    if settings.catalog == "local":
        return LocalCatalog(storage)
    asked, root = of or settings, settings.storage_uri
    databases = {source.database for source in settings.sources} | {sync_reports.DATABASE}
    named = tuple(sorted(databases))
    # Imported late: botocore and Thrift are slow to load, and most lakes do not use them.
    if settings.catalog == "hive":
        with extra_packages("hive", "catalog"):
            from eventlake.catalog.hive import HiveCatalog

        return HiveCatalog(root, asked.hive, named)
    from eventlake.catalog.glue import GlueCatalog

    return GlueCatalog(root, AwsAccess.of(asked), asked.glue_catalog_id, named)


def room(catalog: Catalog, names: Collection[str] | None, limits: Limits) -> int:
    """The number of tables that may be added to a database with these tables.

    None: the database does not exist, and may itself exceed a limit.
    """
    if names is not None:
        return max(0, limits.catalog_tables - len(names))
    return limits.catalog_tables if catalog.count_databases() < limits.catalog_databases else 0
