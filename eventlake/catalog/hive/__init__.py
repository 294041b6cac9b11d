"""The catalog in a Hive metastore."""

from eventlake.catalog.hive.catalog import HiveCatalog

__all__ = ["HiveCatalog"]
