"""The catalog protocol over Glue."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from botocore.exceptions import ClientError

from eventlake.aws.access import AwsAccess
from eventlake.catalog.base import (
    CatalogColumn,
    CatalogPartition,
    CatalogTable,
    Days,
    TableName,
    partition_day,
)
from eventlake.catalog.external import DROPPED, LAKE, RETYPED, Root, attempts, is_outdated, number
from eventlake.catalog.glue.calls import EXISTS, NOT_FOUND, Fields, GlueCalls, code_of
from eventlake.catalog.glue.partitions import (
    PartitionBatches,
    Values,
    moved_partition,
    new_partition,
    read_partition,
)
from eventlake.catalog.glue.tables import (
    about_to_retype,
    change_table,
    days_expression,
    find_table,
    list_partitions,
    new_table,
    read_table,
    restored,
    retyped,
    with_columns,
    with_dropped,
    with_types,
)
from eventlake.rules.errors import InvalidSetting, ServiceTrouble, StateError
from eventlake.storage.base import THREADS


@dataclass(frozen=True)
class GlueCatalog:
    """The databases and tables in Glue that belong to the lake at `place`.

    Databases belong to the lake if it created them or its settings name them; tables, if they are
    below the root of the lake. Others are never shown or changed.

    Concurrent manifests are ordered by version numbers in Glue: each partition has the number of
    the manifest that put it there, each table the number of the last manifest that dropped
    partitions. Manifests are applied in order, so a partition that is missing below that number was
    dropped. Glue has no conditional update of a single partition: if two processes move the same
    partition at the same moment, the last one wins. The lease prevents this.
    """

    place: str
    access: AwsAccess
    catalog_id: str | None = None
    named: tuple[str, ...] = ()
    follows: ClassVar[bool] = True

    @cached_property
    def calls(self) -> GlueCalls:
        return GlueCalls(self.access, self.catalog_id)

    @property
    def root(self) -> Root:
        return Root(self.place)

    def databases(self) -> list[str]:
        return sorted(
            one["Name"]
            for page in self.calls.pages("get_databases", "*", MaxResults=100)
            for one in page["DatabaseList"]
            if one["Name"] in self.named
            or (one.get("Parameters") or {}).get(LAKE) == self.root.place
        )

    def count_databases(self) -> int:
        pages = self.calls.pages("get_databases", "*", AttributesToGet=["NAME"])
        return sum(len(page["DatabaseList"]) for page in pages)

    def tables(self, database: str) -> list[CatalogTable]:
        found = (read_table(one, self.root) for one in self._all_tables(database) or ())
        return sorted((table for table in found if table), key=lambda table: table.name)

    def names(self, database: str) -> set[str] | None:
        found = self._all_tables(database, AttributesToGet=["NAME"])
        return None if found is None else {one["Name"] for one in found}

    def table(self, database: str, name: str) -> CatalogTable | None:
        got = find_table(self.calls, database, name)
        return None if got is None else read_table(got, self.root)

    def ensure_database(self, database: str) -> None:
        """Check first: most databases exist, and not every role may create one."""
        try:
            self.calls.call("get_database", database, Name=database)
        except ClientError as error:
            if code_of(error) != NOT_FOUND:
                raise
            self._make_database(database)

    def create_table(self, table: CatalogTable) -> bool:
        if find_table(self.calls, table.database, table.name) is not None:
            return False
        wanted = new_table(table, self.root)
        try:
            self.calls.call(
                "create_table", table.full_name, DatabaseName=table.database, TableInput=wanted
            )
        except ClientError as error:
            if code_of(error) != EXISTS:  # created concurrently, or the response was lost
                raise
            return False
        return True

    def create_tables(self, tables: Sequence[CatalogTable]) -> list[bool]:
        with ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(self.create_table, tables))

    def append_columns(self, database: str, name: str, columns: Iterable[CatalogColumn]) -> None:
        self._existing(database, name)
        change_table(self.calls, database, name, with_columns(list(columns)))

    def restore(self, table: CatalogTable) -> None:
        if not self.create_table(table):
            self._existing(table.database, table.name)
            change = restored(new_table(table, self.root)["StorageDescriptor"])
            change_table(self.calls, table.database, table.name, change)

    def partitions(
        self, database: str, name: str, days: Days | None = None
    ) -> list[CatalogPartition]:
        keys = tuple(key["Name"] for key in self._existing(database, name)["PartitionKeys"])
        listed = list_partitions(self.calls, database, name, days_expression(keys, days))
        found = (read_partition(one, self.root) for one in listed)
        return sorted(
            (
                partition
                for partition in found
                if days is None or days[0] <= partition_day(keys, partition.values) <= days[1]
            ),
            key=lambda partition: partition.values,
        )

    def put_partitions(
        self, database: str, name: str, partitions: Iterable[CatalogPartition]
    ) -> None:
        table = self._existing(database, name)
        wanted = {partition.values: partition for partition in partitions}
        made = self._put(table, wanted)
        self._take_back(database, name, [wanted[values] for values in made])

    def put_all(self, partitions: Mapping[TableName, Sequence[CatalogPartition]]) -> None:
        def put(table: TableName) -> None:
            self.put_partitions(*table, partitions[table])

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(put, partitions))

    def drop_partitions(
        self, database: str, name: str, values: Iterable[Sequence[str]], version: int
    ) -> None:
        self._existing(database, name)
        gone = [tuple(one) for one in values]
        if gone:
            change_table(self.calls, database, name, with_dropped(version))
            self._drop(database, name, gone, version)

    def retype(
        self,
        database: str,
        name: str,
        types: Mapping[str, str],
        partitions: Iterable[CatalogPartition],
        version: int,
    ) -> None:
        """Mark the table, change all partitions with their types, then the types of the table.

        Glue changes a table and its partitions by separate calls, up to 100 partitions each. Every
        partition has the types of its own files at any moment. During the change, Athena and Trino
        convert the types of partitions to those of the table, or refuse the query if they cannot;
        Spark and Spectrum use the types of the table only, and may refuse it, too. `datalake sql`
        sees the mark and waits. If this is interrupted, the next run continues.
        """
        table = self._existing(database, name)
        if number(table.get("Parameters", {}), RETYPED) >= version:
            return
        change_table(self.calls, database, name, about_to_retype(version))
        stored = table["StorageDescriptor"]
        columns = retyped(stored["Columns"], types)
        like = {**table, "StorageDescriptor": {**stored, "Columns": columns}}
        self._put(like, {partition.values: partition for partition in partitions})
        change_table(self.calls, database, name, with_types(types, version))

    def _put(self, table: Fields, wanted: Mapping[Values, CatalogPartition]) -> set[Values]:
        """Create or move partitions where necessary; returns the values of created ones."""
        batches = PartitionBatches(self.calls, table["DatabaseName"], table["Name"])
        dropped = number(table.get("Parameters", {}), DROPPED)
        like, known = table["StorageDescriptor"], self.calls.fields_of("PartitionInput")
        made: set[Values] = set()
        for _ in attempts():
            existing = batches.get(wanted)
            new = {v: p for v, p in wanted.items() if v not in existing and p.version >= dropped}
            moved = {
                values: moved_partition(wanted[values], before, like, self.root, known)
                for values, before in existing.items()
                if is_outdated(read_partition(before, self.root), wanted[values])
            }
            others = batches.create(new_partition(p, like, self.root) for p in new.values())
            gone = batches.update(moved.values())
            made |= new.keys() - others
            # They changed after they were read.
            wanted = {values: wanted[values] for values in others | gone}
            if not wanted:
                return made
        raise ServiceTrouble(
            f"Partitions of {table['DatabaseName']}.{table['Name']} were created and "
            "removed by another program during every attempt to change them. The next run tries "
            "again."
        )

    def _take_back(self, database: str, name: str, made: list[CatalogPartition]) -> None:
        """Remove partitions just created if a later manifest has dropped them meanwhile."""
        if made:
            table = self._existing(database, name)
            dropped = number(table.get("Parameters", {}), DROPPED)
            late = [partition.values for partition in made if partition.version < dropped]
            self._drop(database, name, late, dropped - 1)

    def _drop(self, database: str, name: str, gone: list[Values], version: int) -> None:
        """Remove partitions, except those that a manifest after `version` put there."""
        batches = PartitionBatches(self.calls, database, name)
        existing = {v: read_partition(one, self.root) for v, one in batches.get(gone).items()}
        batches.delete(v for v, partition in existing.items() if partition.version <= version)

    def _make_database(self, database: str) -> None:
        wanted = {"Name": database, "Parameters": {LAKE: self.root.place}}
        try:
            self.calls.call("create_database", database, DatabaseInput=wanted)
        except ClientError as error:
            if code_of(error) != EXISTS:
                raise

    def _all_tables(self, database: str, **arguments: list[str]) -> list[Fields] | None:
        """All tables of a database, also of other programs; None without the database."""
        try:
            pages = self.calls.pages("get_tables", database, DatabaseName=database, **arguments)
            return [one for page in pages for one in page["TableList"]]
        except ClientError as error:
            if code_of(error) == NOT_FOUND:
                return None
            raise

    def _existing(self, database: str, name: str) -> Fields:
        """A table of this lake as stored in Glue."""
        got = find_table(self.calls, database, name)
        if got is None:
            raise StateError(
                f"Table {database}.{name} is not in the catalog. "
                "Create it before its columns and partitions."
            )
        if read_table(got, self.root) is None:
            place = got.get("StorageDescriptor", {}).get("Location") or "no place of its own"
            raise InvalidSetting(
                f"Table {database}.{name} of the Glue catalog is not one of this lake: it lies in "
                f"{place}, not below {self.root.place}, or not as Parquet. It is left as it is. "
                "Set another `database` or a `table_prefix` for the source, or rename that table."
            )
        return got
