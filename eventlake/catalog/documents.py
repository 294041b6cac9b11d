"""What stands in the files of the embedded catalog, besides tables."""

import msgspec

from eventlake.catalog.base import CatalogPartition


class Database(msgspec.Struct, frozen=True):
    """`database.json`: that a database was made."""

    name: str


class Dropped(msgspec.Struct, frozen=True):
    """A partition that is gone, and the number of the manifest that dropped it."""

    values: tuple[str, ...]
    version: int


class Month(msgspec.Struct, frozen=True):
    """`partitions/<YYYY-MM>.json`: the partitions of one month, and those it no longer has."""

    partitions: tuple[CatalogPartition, ...] = ()
    dropped: tuple[Dropped, ...] = ()
