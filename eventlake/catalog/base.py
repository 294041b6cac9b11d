"""The catalog as the rest of the lake sees it: the same for files, Glue and Hive."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

Days = tuple[str, str]
"""First and last day, both included, as `YYYY-MM-DD`."""

TableName = tuple[str, str]
"""A database, and the name of a table in it."""


class CatalogColumn(msgspec.Struct, frozen=True):
    """A column as query engines see it; `type` is Hive's spelling, `comment` the original path."""

    name: str
    type: str
    comment: str = ""


Format = Literal["parquet", "json", "symlink"]
"""Of the files in the location of a partition; symlink: they list Parquet files elsewhere."""


class CatalogTable(msgspec.Struct, frozen=True):
    """An external table; `location` is relative to the storage's root, keys are all strings."""

    database: str
    name: str
    columns: tuple[CatalogColumn, ...]
    partition_keys: tuple[str, ...]
    location: str
    format: Format = "parquet"
    comment: str = ""
    # The number of the manifest that last changed the type of a column; negative during the change,
    # if types and partitions cannot be changed at once.
    retyped: int = 0

    @property
    def full_name(self) -> str:
        return f"{self.database}.{self.name}"


class HeldFile(msgspec.Struct, frozen=True, array_like=True):
    """A file in the folder of a partition."""

    name: str
    bytes: int


class CatalogPartition(msgspec.Struct, frozen=True, omit_defaults=True):
    """The location of a partition; `version` is the number of the manifest that put it there.

    `held` has its files: only the pages of the lake store them.
    """

    values: tuple[str, ...]
    location: str
    version: int
    rows: int = 0
    bytes: int = 0
    files: int = 0
    held: tuple[HeldFile, ...] = ()


class Catalog(Protocol):
    """The operations of a backend. All may be repeated; late repetitions do no harm."""

    @property
    def follows(self) -> bool:
        """Whether it stores partitions itself, which follow those of the state."""
        ...

    def databases(self) -> list[str]: ...

    def count_databases(self) -> int:
        """The number of all databases of the account: it is limited."""
        ...

    def names(self, database: str) -> set[str] | None:
        """The names of all tables in a database, also of other programs; None if it is missing."""
        ...

    def tables(self, database: str) -> list[CatalogTable]:
        """All tables of a database, by name; empty if the database does not exist."""
        ...

    def table(self, database: str, name: str) -> CatalogTable | None: ...

    def ensure_database(self, database: str) -> None: ...

    def create_table(self, table: CatalogTable) -> bool:
        """Create a table and return True; an existing table stays unchanged."""
        ...

    def create_tables(self, tables: Sequence[CatalogTable]) -> list[bool]:
        """Create several tables independently; for each, whether it was created."""
        ...

    def append_columns(self, database: str, name: str, columns: Iterable[CatalogColumn]) -> None:
        """Add the columns that are missing, at the end and in this order, in one update."""
        ...

    def restore(self, table: CatalogTable) -> None:
        """Restore the columns and location of a changed entry, or create it."""
        ...

    def partitions(
        self, database: str, name: str, days: Days | None = None
    ) -> list[CatalogPartition]:
        """The partitions of a table, by their values; of some days only, if days are given."""
        ...

    def put_partitions(
        self, database: str, name: str, partitions: Iterable[CatalogPartition]
    ) -> None:
        """Add partitions or move them; what a later manifest set or dropped stays as it is."""
        ...

    def put_all(self, partitions: Mapping[TableName, Sequence[CatalogPartition]]) -> None:
        """Put partitions of several tables independently."""
        ...

    def drop_partitions(
        self, database: str, name: str, values: Iterable[Sequence[str]], version: int
    ) -> None:
        """Drop partitions for good: manifests before `version` cannot restore them."""
        ...

    def retype(
        self,
        database: str,
        name: str,
        types: Mapping[str, str],
        partitions: Iterable[CatalogPartition],
        version: int,
    ) -> None:
        """Change types of columns and move all partitions to files with these types, as one change.

        Readers see the old types and files or the new ones, as far as the backend allows.
        """
        ...


def partition_day(keys: Sequence[str], values: Sequence[str]) -> str:
    """The day of a partition in any layout."""
    named = dict(zip(keys, values, strict=True))
    if "year" in named:
        return f"{named['year']}-{named['month']}-{named['day']}"
    return named["day"]
