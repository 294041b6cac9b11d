"""The catalog protocol over a Hive metastore."""

import copy
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from pymetastore.hive_metastore.ttypes import (
    AddPartitionsRequest,
    AlreadyExistsException,
    Database,
    DropPartitionsRequest,
    EnvironmentContext,
    FieldSchema,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    Partition,
    RequestPartsSpec,
    Table,
    UnknownDBException,
)

from eventlake.catalog.base import (
    CatalogColumn,
    CatalogPartition,
    CatalogTable,
    Days,
    TableName,
    partition_day,
)
from eventlake.catalog.external import (
    DROPPED,
    LAKE,
    RETYPED,
    RETYPING,
    Root,
    attempts,
    is_outdated,
    number,
)
from eventlake.catalog.hive.client import Metastore, trouble
from eventlake.catalog.hive.tables import (
    changed_comments,
    columns_of,
    cut_columns,
    keep_comments,
    moved_partition,
    new_column,
    new_partition,
    new_table,
    put_columns,
    read_partition,
    read_table,
)
from eventlake.rules.errors import InvalidSetting, ServiceTrouble, StateError
from eventlake.settings.hive import Hive

_REVISION = "datalake.revision"
"""The parameter of a table that is another after each change by a lake."""

_NO_STATS = {"DO_NOT_UPDATE_STATS": "true"}  # else the metastore lists folders of tables
_THREADS = 8  # a metastore has few connections to its database
_BATCH = 500
_BATCH_COLUMNS = 100_000  # each partition repeats all columns of its table
_MISSING = (NoSuchObjectException, UnknownDBException)

R = TypeVar("R")
T = TypeVar("T")
Values = tuple[str, ...]
Change = Callable[[Table], bool]
"""Changes a table in place; False if it is as it should be already."""


@dataclass(frozen=True)
class HiveCatalog:
    """The databases and tables of a metastore, as far as they are of the lake at `place`.

    Of databases these are the ones that the lake has made and those that its settings name; of
    tables, those that lie below the lake's root. Others are never shown, nor changed.

    A table is changed only if it still has the revision that was read: metastores from 2.3.10 and
    4.0 on test that, earlier ones let the last of two changes win. None has a condition on the
    change of a partition. The lease keeps runs apart.
    """

    place: str
    server: Hive
    named: tuple[str, ...] = ()
    follows: ClassVar[bool] = True

    @property
    def root(self) -> Root:
        return Root(self.place)

    def databases(self) -> list[str]:
        return sorted(name for name in self._all_databases() if self._is_ours(name))

    def _is_ours(self, name: str) -> bool:
        if name in self.named:
            return True
        found = self._database(name)
        return found is not None and (found.parameters or {}).get(LAKE) == self.place

    def count_databases(self) -> int:
        return len(self._all_databases())

    def names(self, database: str) -> set[str] | None:
        if self._database(database) is None:
            return None
        return set(self._call(database, "get_all_tables", database))

    def tables(self, database: str) -> list[CatalogTable]:
        names = sorted(self.names(database) or ())
        batches = [names[start : start + _BATCH] for start in range(0, len(names), _BATCH)]
        found = (
            read_table(one, self.root)
            for batch in batches
            for one in self._call(database, "get_table_objects_by_name", database, batch)
        )
        return sorted((table for table in found if table), key=lambda table: table.name)

    def table(self, database: str, name: str) -> CatalogTable | None:
        got = self._find(database, name)
        return None if got is None else read_table(got, self.root)

    def ensure_database(self, database: str) -> None:
        """Check first: most databases exist, and not everyone may create one."""
        if self._database(database) is None:
            new = Database(name=database, parameters={LAKE: self.place})
            with suppress(AlreadyExistsException):
                self._call(database, "create_database", new)

    def create_table(self, table: CatalogTable) -> bool:
        if self._find(table.database, table.name) is not None:
            return False
        new = new_table(table, self.root)
        new.parameters[_REVISION] = uuid.uuid4().hex
        try:
            self._call(table.full_name, "create_table", new)
        except AlreadyExistsException:  # created meanwhile, or the response was lost
            return False
        return True

    def create_tables(self, tables: Sequence[CatalogTable]) -> list[bool]:
        return self._each(self.create_table, tables)

    def append_columns(self, database: str, name: str, columns: Iterable[CatalogColumn]) -> None:
        wanted = list(columns)

        def grown(table: Table) -> bool:
            known = {column.name for column in columns_of(table)}
            new = [column for column in wanted if column.name not in known]
            keep_comments(table, changed_comments(new))
            put_columns(table, [*columns_of(table), *map(new_column, new)])
            return bool(new)

        self._change(database, name, grown)

    def restore(self, table: CatalogTable) -> None:
        if self.create_table(table):
            return
        wanted = new_table(table, self.root)

        def restored(got: Table) -> bool:
            found = read_table(got, self.root)
            if found and (found.columns, found.location) == (table.columns, table.location):
                return False
            keep_comments(got, changed_comments(table.columns))
            got.sd.location = wanted.sd.location
            put_columns(got, wanted.sd.cols)
            return True

        self._change(table.database, table.name, restored)

    def partitions(
        self, database: str, name: str, days: Days | None = None
    ) -> list[CatalogPartition]:
        table = self._existing(database, name)
        keys = tuple(key.name for key in table.partitionKeys)
        names: list[str] = self._call(
            f"{database}.{name}", "get_partition_names", database, name, -1
        )
        if days is not None:
            named = (
                (one, tuple(part.partition("=")[2] for part in one.split("/"))) for one in names
            )
            names = [n for n, values in named if days[0] <= partition_day(keys, values) <= days[1]]
        found = (read_partition(one, self.root) for one in self._partitions(table, names))
        return sorted(found, key=lambda partition: partition.values)

    def put_partitions(
        self, database: str, name: str, partitions: Iterable[CatalogPartition]
    ) -> None:
        table = self._existing(database, name)
        wanted = {partition.values: partition for partition in partitions}
        made = self._put(table, wanted)
        self._take_back(database, name, [wanted[values] for values in made])

    def put_all(self, partitions: Mapping[TableName, Sequence[CatalogPartition]]) -> None:
        self._each(lambda table: self.put_partitions(*table, partitions[table]), list(partitions))

    def drop_partitions(
        self, database: str, name: str, values: Iterable[Sequence[str]], version: int
    ) -> None:
        gone = [tuple(one) for one in values]
        table = self._existing(database, name)
        if not gone:
            return

        def noted(table: Table) -> bool:
            if number(table.parameters, DROPPED) >= version:
                return False
            table.parameters[DROPPED] = str(version)
            return True

        self._change(database, name, noted)
        self._drop(table, gone, version)

    def retype(
        self,
        database: str,
        name: str,
        types: Mapping[str, str],
        partitions: Iterable[CatalogPartition],
        version: int,
    ) -> None:
        """A note that it begins, all partitions with their types, then the types of the table.

        A metastore changes a table and its partitions by separate calls. `datalake sql` sees the
        note and waits; other readers may fail in between, or see null. If this is interrupted, the
        next run continues where it ended.
        """
        table = self._existing(database, name)
        if number(table.parameters, RETYPED) >= version:
            return

        def begun(table: Table) -> bool:
            if max(number(table.parameters, key) for key in (RETYPED, RETYPING)) >= version:
                return False
            table.parameters[RETYPING] = str(version)
            return True

        def switched(table: Table) -> bool:
            if number(table.parameters, RETYPED) >= version:
                return False
            table.parameters[RETYPED] = str(version)
            if number(table.parameters, RETYPING) <= version:
                table.parameters.pop(RETYPING, None)
            put_columns(table, _with_types(table, types))
            return True

        self._change(database, name, begun)
        put_columns(table, _with_types(table, types))
        self._put(table, {partition.values: partition for partition in partitions})
        self._change(database, name, switched)

    def _put(self, table: Table, wanted: Mapping[Values, CatalogPartition]) -> set[Values]:
        """Make or move partitions that are not as wanted; the values of those that were made."""
        dropped = number(table.parameters, DROPPED)
        made: set[Values] = set()
        for _ in attempts():
            names = [partition_name(table, values) for values in wanted]
            existing = {tuple(one.values): one for one in self._partitions(table, names)}
            new = [p for v, p in wanted.items() if v not in existing and p.version >= dropped]
            moved = {
                values: wanted[values]
                for values, before in existing.items()
                if is_outdated(read_partition(before, self.root), wanted[values])
            }
            created = self._create(table, [new_partition(p, table, self.root) for p in new])
            made |= created
            changed = self._alter(
                table,
                [moved_partition(p, existing[v], table, self.root) for v, p in moved.items()],
            )
            # They were changed after they were read.
            left = ({p.values for p in new} - created) | (set() if changed else set(moved))
            wanted = {values: wanted[values] for values in left}
            if not wanted:
                return made
        raise ServiceTrouble(
            f"Partitions of {_name(table)} were created and removed by another program during "
            "every attempt to change them. The next run tries again."
        )

    def _create(self, table: Table, new: Sequence[Partition]) -> set[Values]:
        """Make partitions; the values of those that did not exist."""
        created: set[Values] = set()
        for batch in self._batches(table, new):
            request = AddPartitionsRequest(table.dbName, table.tableName, batch, True, True)
            answer = self._call(_name(table), "add_partitions_req", request)
            created |= {tuple(one.values) for one in answer.partitions or ()}
        return created

    def _alter(self, table: Table, moved: Sequence[Partition]) -> bool:
        """Change partitions; False if one of them does not exist any more."""
        for batch in self._batches(table, moved):
            given = (table.dbName, table.tableName, batch, EnvironmentContext(dict(_NO_STATS)))
            try:
                self._call(_name(table), "alter_partitions_with_environment_context", *given)
            except InvalidOperationException as error:
                if "NoSuchObject" not in (error.message or ""):
                    raise trouble(error, _name(table)) from error
                return False
        return True

    def _take_back(self, database: str, name: str, made: list[CatalogPartition]) -> None:
        """Remove what we have made just now, if a later manifest has dropped it meanwhile."""
        if made:
            table = self._existing(database, name)
            dropped = number(table.parameters, DROPPED)
            late = [partition.values for partition in made if partition.version < dropped]
            self._drop(table, late, dropped - 1)

    def _drop(self, table: Table, gone: list[Values], version: int) -> None:
        """Remove those partitions that no manifest after `version` has put there."""
        names = [partition_name(table, values) for values in gone]
        existing = [read_partition(one, self.root) for one in self._partitions(table, names)]
        old = [partition_name(table, p.values) for p in existing if p.version <= version]
        for start in range(0, len(old), _BATCH):
            request = DropPartitionsRequest(
                dbName=table.dbName,
                tblName=table.tableName,
                parts=RequestPartsSpec(names=old[start : start + _BATCH]),
                deleteData=False,
                ifExists=True,
                needResult=False,
            )
            self._call(_name(table), "drop_partitions_req", request)

    def _partitions(self, table: Table, names: Sequence[str]) -> list[Partition]:
        """Those of the partitions that exist."""

        def read(batch: list[str]) -> list[Partition]:
            given = (table.dbName, table.tableName, batch)
            found: list[Partition] = self._call(_name(table), "get_partitions_by_names", *given)
            return found

        return [one for found in self._each(read, self._batches(table, names)) for one in found]

    def _batches(self, table: Table, items: Sequence[T]) -> list[list[T]]:
        size = max(1, min(_BATCH, _BATCH_COLUMNS // max(1, len(table.sd.cols))))
        return [list(items[start : start + size]) for start in range(0, len(items), size)]

    def _change(self, database: str, name: str, change: Change) -> None:
        """Change a table by one update, on top of whatever it is at that moment."""
        about = f"{database}.{name}"
        for last in attempts():
            got = self._existing(database, name)
            wanted = copy.deepcopy(got)
            if not change(wanted):
                return
            try:
                self._alter_table(got, wanted)
                return
            except MetaException as error:
                if "has been modified" not in (error.message or ""):
                    raise trouble(error, about) from error
                if last:
                    raise ServiceTrouble(
                        f"Table {about} was modified by other programs during every attempt to "
                        "change it. The next run tries again."
                    ) from error

    def _alter_table(self, got: Table, wanted: Table) -> None:
        try:
            self._send(got, wanted)
        except InvalidOperationException as error:
            if "incompatible" not in (error.message or ""):
                raise trouble(error, _name(got)) from error
            cut = copy.deepcopy(got)
            cut_columns(cut, columns_of(got), wanted.sd.cols)
            self._send(got, cut)
            self._send(cut, wanted)

    def _send(self, got: Table, wanted: Table) -> None:
        """Replace a table if it has not been changed since it was read."""
        before = (got.parameters or {}).get(_REVISION)
        wanted.parameters[_REVISION] = uuid.uuid4().hex
        properties = dict(_NO_STATS)
        if before is not None:
            properties["expected_parameter_key"] = _REVISION
            properties["expected_parameter_value"] = before
        given = (got.dbName, got.tableName, wanted, EnvironmentContext(properties))
        self._call(_name(got), "alter_table_with_environment_context", *given)

    def _find(self, database: str, name: str) -> Table | None:
        try:
            return self._call(f"{database}.{name}", "get_table", database, name)
        except _MISSING:
            return None

    def _existing(self, database: str, name: str) -> Table:
        """A table of this lake, as the metastore has it."""
        got = self._find(database, name)
        if got is None:
            raise StateError(
                f"Table {database}.{name} is not in the catalog. "
                "Create it before its columns and partitions."
            )
        if read_table(got, self.root) is None:
            place = (got.sd.location if got.sd else None) or "no place of its own"
            raise InvalidSetting(
                f"Table {database}.{name} of the Hive metastore is not one of this lake: it lies "
                f"in {place}, not below {self.root.place}, or not as Parquet. It is left as it is. "
                "Set another `database` or a `table_prefix` for the source, or rename that table."
            )
        return got

    def _database(self, name: str) -> Database | None:
        try:
            return self._call(name, "get_database", name)
        except _MISSING:
            return None

    def _all_databases(self) -> list[str]:
        found: list[str] = self._call("databases", "get_all_databases")
        return found

    def _call(self, about: str, method: str, *given: Any) -> Any:
        return Metastore(self.server).call(about, method, *given)

    def _each(self, do: Callable[[T], R], items: Sequence[T]) -> list[R]:
        if len(items) < 2:
            return [do(item) for item in items]
        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(do, items))


def _name(table: Table) -> str:
    return f"{table.dbName}.{table.tableName}"


def partition_name(table: Table, values: Sequence[str]) -> str:
    """The name of a partition: `day=2026-10-01/hr=07`."""
    keys = (key.name for key in table.partitionKeys)
    return "/".join(f"{key}={value}" for key, value in zip(keys, values, strict=True))


def _with_types(table: Table, types: Mapping[str, str]) -> list[FieldSchema]:
    columns = copy.deepcopy(columns_of(table))
    for column in columns:
        column.type = types.get(column.name, column.type)
    return columns
