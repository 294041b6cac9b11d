"""Another type for a column: the preview of its effect, and the request for a replay.

The preview counts values in the lake's own files. A cell that lost something has its original in
`rescued_data`. Of all others only the cell is left, and several values may have become it: `3` in a
bigint column was `3`, `3.0`, `3e0` or "3"; `[1]` in a string column was an array or a text; a
timestamp was written in any of the forms of a date. For each of these the cast into every other
type has the same outcome, so the counts are right, although a string column will contain what was
written. Only an empty text leaves no trace: it is null in every column but a string one.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec.structs import replace

from eventlake.lake import Lake
from eventlake.rules.casts import Cell, Outcome, cast, text_of
from eventlake.rules.clock import new_run_id, now
from eventlake.rules.counts import CastCounts
from eventlake.rules.errors import CommitConflict, UsageError, did_you_mean
from eventlake.rules.inference import Leaf
from eventlake.rules.names import (
    RESCUED_DATA,
    STANDARD_COLUMNS,
    column_name,
    pointer_path,
    type_of_table,
)
from eventlake.rules.parse import parse_value
from eventlake.rules.types import Column, LakeType, TableSchema
from eventlake.runs.clean_up import with_unused
from eventlake.runs.publish import apply, catch_up
from eventlake.settings.models import Source
from eventlake.state.lease import Lease, held_lease
from eventlake.state.manifest import RunKind, TypeRequest, commit
from eventlake.state.report import RunFacts
from eventlake.state.source_state import SourceState, read_state, refuse_changed_layout

_ALIASES = {"decimal": LakeType.DECIMAL}


@dataclass(frozen=True, slots=True)
class Target:
    """A column of an event table, its source, and the type requested for it."""

    source: Source
    schema: TableSchema
    column: Column
    requested: LakeType | None = None

    @property
    def name(self) -> str:
        return f"{self.schema.key}.{self.column.name}"


def parse_type(text: str) -> LakeType:
    """One of the five types, in any case; `decimal` is `decimal(38,6)`."""
    word = "".join(text.lower().split())
    known = {**{type.value: type for type in LakeType}, **_ALIASES}
    if word not in known:
        raise UsageError(
            f"{text!r} is no type of the lake{did_you_mean(word, known)}; allowed are "
            f"{', '.join(LakeType)}."
        )
    return known[word]


def find_column(lake: Lake, name: str) -> Target:
    """The column called `database.table.column`, if its type may change."""
    parts = name.split(".")
    if len(parts) != 3 or not all(parts):
        raise UsageError(
            f"{name!r} names no column; write DB.TABLE.COLUMN, as in "
            "ios_prod.track_order_completed.properties_total."
        )
    database, table, column = parts
    states = [
        (source, read_state(lake.for_source(source).storage, source.id))
        for source in lake.settings.sources
    ]
    source, state, schema = _find_table(states, database, table)
    found = _find_column(source, schema, column)
    return Target(source, schema, found, state.requested_types.get(schema.key, {}).get(column))


def _find_table(
    states: list[tuple[Source, SourceState]], database: str, name: str
) -> tuple[Source, SourceState, TableSchema]:
    written = [(so, st, schema) for so, st in states for schema in st.tables_of(so).values()]
    databases = sorted({schema.database for _, _, schema in written})
    if database not in databases:
        listed = ", ".join(databases) or "none yet; `datalake sync` creates them"
        raise UsageError(
            f"No source writes event tables to a database {database!r}"
            f"{did_you_mean(database, databases)} (databases: {listed})."
        )
    tables = {schema.name: one for one in written if (schema := one[2]).database == database}
    if name not in tables:
        raise UsageError(
            f"Database {database} has no event table {name!r}{did_you_mean(name, tables) or '.'} "
            f"`datalake tables {database}` lists its tables."
        )
    return tables[name]


def _find_column(source: Source, schema: TableSchema, name: str) -> Column:
    columns = {column.name: column for column in schema.columns}
    if name in {column.name(source.naming) for column in STANDARD_COLUMNS}:
        raise UsageError(
            f"{name} is a standard column: every table has it with the type "
            f"{columns[name].type.sql}. Only columns of event fields can get another type."
        )
    if name == RESCUED_DATA:
        raise UsageError(
            f"{name} keeps the values that did not fit into other columns, as JSON text. Give one "
            "of these columns another type: its values then return from there."
        )
    if name in source.date_partition.keys:
        raise UsageError(f"{name} is a partition key of {schema.key}; these are always strings.")
    if name not in columns:
        raise UsageError(
            f"{schema.key} has no column {name!r}{did_you_mean(name, columns) or '.'} "
            f"`datalake tables {schema.key}` lists its columns."
        )
    return columns[name]


def record_request(
    lake: Lake, target: Target, type: LakeType | None, waiting: Callable[[Lease], None]
) -> None:
    """Commit the request (None: withdraw it) as soon as the lease is free."""
    source, lake = target.source, lake.for_source(target.source)
    storage, catalog = lake.storage, lake.catalog
    run_id = new_run_id()
    facts = RunFacts.of(lake.settings, source, run_id, now())
    # Without the lease, a unit of work in progress would have to be repeated.
    with held_lease(storage, source.id, run_id, f"retype of {target.name}", waiting):
        while True:
            state = catch_up(storage, catalog, source.id)
            refuse_changed_layout(source, state)
            has = state.tables[target.schema.key].types()[target.column.name]
            request = TypeRequest(
                target.schema.key, target.column.name, None if type is has else type
            )
            manifest = replace(
                state.next_manifest(source, RunKind.RETYPE, facts),
                requested_types=(request,),
            )
            manifest = with_unused(state, manifest, now())
            try:
                commit(storage, manifest)
            except CommitConflict:
                continue
            apply(storage, catalog, state, manifest)
            return


def days_to_replay(lake: Lake, target: Target) -> tuple[date, date]:
    """The first and the last day to replay for the new type to take effect."""
    source, schema = target.source, target.schema
    kept = read_state(lake.storage, source.id).start
    first = source.start or (date.fromisoformat(kept) if kept else date.min)
    partitions = lake.catalog.partitions(schema.database, schema.name)
    days = {source.date_partition.parse(p.values).date() for p in partitions}
    today = now().date()
    inside = [day for day in days if first <= day <= today] or [today]
    return min(inside), max(inside)


_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
NOTHING = CastCounts()
EXAMPLES = 5
"""Lossy or failed values that are shown."""


@dataclass(frozen=True, slots=True)
class PartitionPreview:
    """The values of a partition by outcome; `returning` exact ones are in `rescued_data` now."""

    values: tuple[str, ...]
    rows: int = 0
    casts: CastCounts = NOTHING
    returning: int = 0


@dataclass(slots=True)
class Preview:
    """All partitions of the table, in order."""

    partitions: list[PartitionPreview] = field(default_factory=list)
    examples: dict[Outcome, list[str]] = field(default_factory=dict)

    @property
    def total(self) -> PartitionPreview:
        parts = self.partitions
        return PartitionPreview(
            (),
            sum(part.rows for part in parts),
            sum((part.casts for part in parts), NOTHING),
            sum(part.returning for part in parts),
        )


def preview(lake: Lake, target: Target, into: LakeType) -> Preview:
    """Cast every value of the column as a replay would; nothing is written."""
    lake = lake.for_source(target.source)
    reader, shown = ColumnReader(target), Preview()
    for partition in lake.catalog.partitions(target.schema.database, target.schema.name):
        rows, outcomes, returning = 0, Counter[Outcome](), 0
        for file in lake.storage.files(partition.location, recursive=False):
            with lake.storage.open_input(file.path) as stream:
                parquet = pq.ParquetFile(stream)
                names = {target.column.name, RESCUED_DATA} & {*parquet.schema_arrow.names}
                for batch in parquet.iter_batches(columns=sorted(names)):
                    rows += len(batch)
                    for one in reader.read(batch):
                        outcome = cast(one.value, into)[1]
                        outcomes[outcome] += one.count
                        returning += one.is_rescued and outcome is Outcome.EXACT
                        _add_example(shown.examples, outcome, one.text)
        casts = CastCounts(**{outcome.value: count for outcome, count in outcomes.items()})
        shown.partitions.append(PartitionPreview(partition.values, rows, casts, returning))
    return shown


def _add_example(examples: dict[Outcome, list[str]], outcome: Outcome, text: str) -> None:
    if outcome is not Outcome.EXACT:
        shown = examples.setdefault(outcome, [])
        if len(shown) < EXAMPLES and text not in shown:
            shown.append(text)


@dataclass(frozen=True, slots=True)
class Original:
    """A value that became cells of the column, and how often; `text` is for people."""

    value: Leaf
    text: str
    count: int = 1
    is_rescued: bool = False


@dataclass(frozen=True)
class ColumnReader:
    """Finds the original values of one column in rows of its table."""

    target: Target
    _feeds: dict[str, bool] = field(default_factory=dict)  # by pointer

    def read(self, rows: pa.RecordBatch) -> Iterator[Original]:
        """A missing column is as good as nulls: older files lack columns and `rescued_data`."""
        of_type = self.target.column.type.arrow
        cells = _cells(rows, self.target.column.name, of_type)
        texts = _cells(rows, RESCUED_DATA, pa.string())
        rescued = dict(self._rescued(cells, texts)) if texts.null_count < len(texts) else {}
        if rescued:
            kept = pa.array([row not in rescued for row in range(len(cells))])
            cells = pc.if_else(kept, cells, pa.scalar(None, of_type))
        yield from _distinct(cells.drop_null(), self.target.column.type)
        for value in rescued.values():
            yield Original(value, text_of(value), is_rescued=True)

    def _rescued(self, cells: pa.Array, texts: pa.Array) -> Iterator[tuple[int, Leaf]]:
        """The rows whose cell represents a rescued value, and that value."""
        rows = pc.indices_nonzero(texts.is_valid())
        known = _plain(cells.take(rows))
        members = map(_MEMBERS.decode, texts.take(rows).to_pylist())
        for row, cell, pointers in zip(rows.to_pylist(), known, members, strict=True):
            mine = [raw for pointer, raw in pointers.items() if self._is_mine(pointer)]
            if mine and (found := self._original(cell, mine)) is not None:
                yield row, found

    def _original(self, cell: Cell, candidates: list[msgspec.Raw]) -> Leaf | None:
        """The value that became the cell. Others had the same column, and the cell was taken."""
        for raw in candidates:
            value: Leaf = parse_value(bytes(raw).decode())
            if cell is None or cast(value, self.target.column.type) == (cell, Outcome.LOSSY):
                return value
        return None

    def _is_mine(self, pointer: str) -> bool:
        """Whether a field goes to this column."""
        if pointer not in self._feeds:
            source, naming = self.target.source, self.target.source.naming
            keys, length = source.date_partition.keys, source.limits.column_name
            event_type = type_of_table(self.target.schema.table, naming)
            name = column_name(pointer_path(pointer), naming, event_type, keys, length)
            self._feeds[pointer] = name == self.target.column.name
        return self._feeds[pointer]


def _cells(rows: pa.RecordBatch, name: str, type: pa.DataType) -> pa.Array:
    return rows[name] if name in rows.schema.names else pa.nulls(len(rows), type)


def _distinct(cells: pa.Array, type: LakeType) -> Iterator[Original]:
    """The distinct cells as if just read; of a timestamp, every form of date has the same casts."""
    found = pc.value_counts(cells)
    values, counts = found.field("values"), found.field("counts")
    texts = values.cast(pa.string()).to_pylist()
    originals: list[Leaf] = values.to_pylist()
    if type is LakeType.DECIMAL:
        originals = [msgspec.Raw(text.encode()) for text in texts]
    elif type is LakeType.TIMESTAMP:
        originals = ["1970-01-01"] * len(texts)
    yield from map(Original, originals, texts, counts.to_pylist())


def _plain(cells: pa.Array) -> list[Cell]:
    """Cells as casts return them: timestamps are microseconds."""
    if pa.types.is_timestamp(cells.type):
        cells = cells.cast(pa.int64())
    plain: list[Cell] = cells.to_pylist()
    return plain
