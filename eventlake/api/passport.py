"""The passport of a column: where it comes from, how full it is, and what its values are."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from eventlake.catalog.base import CatalogPartition
from eventlake.checks.fill import filled_rows
from eventlake.retype import ColumnReader, Original, Target
from eventlake.rules.casts import Outcome, cast, text_of
from eventlake.rules.clock import now
from eventlake.rules.counts import CastCounts
from eventlake.rules.inference import Kind, kind_of
from eventlake.rules.names import (
    MESSAGE_ID,
    RECEIVED_AT,
    RESCUED_DATA,
    STANDARD_COLUMNS,
    Naming,
    column_name,
    pointer_path,
    type_of_table,
)
from eventlake.rules.numbers import Number
from eventlake.rules.text import shown
from eventlake.rules.types import LakeType
from eventlake.runs.report_history import RunReport

if TYPE_CHECKING:
    from eventlake.api.tables import Table, TableColumn

_CELLS = 1_000_000  # of the newest rows, that are looked at for one table
_ROWS = range(200, 10_001)
_EXAMPLES = 8
_FEW = 20  # values, from which no other type is proposed
_MISTAKES = 0.01  # of the values
_REPORT_DAYS = 90
_OLDEST = 100  # partitions that are searched for the first value, if no report names them
_LIBRARY = ("context_library_name", "context_library_version")
_KINDS = {
    Kind.INT64: "integer",
    Kind.BIGINT_OVERFLOW: "integer beyond 64 bits",
    Kind.HUGE: "number beyond 32 digits",
    Kind.NUMBER: "fraction",
    Kind.BOOL: "true or false",
    Kind.DATE: "date",
    Kind.TEXT: "text",
    Kind.ARRAY: "array",
}
_NARROW_FIRST = (
    LakeType.BOOLEAN,
    LakeType.BIGINT,
    LakeType.DECIMAL,
    LakeType.TIMESTAMP,
    LakeType.STRING,
)


@dataclass(frozen=True, slots=True)
class Values:
    """The newest rows of a table in one column; `rescued` values of its fields did not fit."""

    rows: int
    values: int
    distinct: int
    rescued: int = 0


@dataclass(frozen=True)
class Profile:
    """The newest rows of a table, without those of suppressed people, column by column."""

    rows: pa.Table
    columns: dict[str, Values]
    rescued: dict[str, tuple[str, ...]]  # examples by column, as they were sent


@dataclass(frozen=True, slots=True)
class FirstSeen:
    """The run that added a column, and the first event with a value of it, if still known."""

    run: RunReport | None = None
    message_id: str = ""
    received_at: datetime | None = None
    library: str = ""  # the SDK that sent it, and its version


@dataclass(frozen=True, slots=True)
class Proposal:
    """A type that all values looked at fit, and why it is better than the one of the column."""

    type: LakeType
    reason: str


@dataclass(frozen=True)
class Passport:
    """What is known of a column; values are those of the newest rows."""

    column: "TableColumn"
    fill: dict[str, float]  # share of rows with a value, by day
    silent: bool
    values: Values
    kinds: dict[str, int] = field(default_factory=dict)
    frequent: tuple[tuple[str, int], ...] = ()
    rescued: tuple[str, ...] = ()
    casts: dict[LakeType, CastCounts] = field(default_factory=dict)
    requested: LakeType | None = None
    proposal: Proposal | None = None
    first: FirstSeen = field(default_factory=FirstSeen)


def profile(table: "Table") -> Profile:
    """Count the values of all columns in the newest rows: some of them, not the whole table."""
    count = _CELLS // max(1, len(table.columns))
    rows = table.sample(min(max(count, _ROWS.start), _ROWS.stop - 1))
    rescued = _rescued_by_column(table, rows)
    columns = {
        name: Values(
            rows=len(rows),
            values=len(rows) - rows[name].null_count,
            distinct=pc.count_distinct(rows[name]).as_py() if _is_plain(rows[name]) else 0,
            rescued=len(rescued.get(name, ())),
        )
        for name in rows.column_names
    }
    examples = {name: tuple(dict.fromkeys(texts))[:_EXAMPLES] for name, texts in rescued.items()}
    return Profile(rows, columns, examples)


def _is_plain(values: pa.ChunkedArray) -> bool:
    return not pa.types.is_nested(values.type)


_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _rescued_by_column(table: "Table", rows: pa.Table) -> dict[str, list[str]]:
    """Rescued values by the column that their field belongs to."""
    owner = table.owner
    found: dict[str, list[str]] = {}
    if owner is None or RESCUED_DATA not in rows.column_names:
        return found
    source, naming = owner.source, owner.source.naming
    event_type = type_of_table(owner.schema.table, naming)
    columns: dict[str, str | None] = {}
    for text in rows[RESCUED_DATA].drop_null().to_pylist():
        for pointer, raw in _MEMBERS.decode(text).items():
            if pointer not in columns:
                path, length = pointer_path(pointer), source.limits.column_name
                keys = source.date_partition.keys
                columns[pointer] = column_name(path, naming, event_type, keys, length)
            if (column := columns[pointer]) is not None:
                found.setdefault(column, []).append(bytes(raw).decode())
    return found


def passport(table: "Table", column: "TableColumn", days: int) -> Passport:
    """All that is known of a column of a table."""
    seen, fill = profile(table), table.fill(days)
    found = Passport(
        column,
        {} if column.is_key else fill.by_day(column.name),
        fill.is_silent(column.name),
        seen.columns[column.name],
        frequent=_frequent(seen.rows[column.name]),
        rescued=seen.rescued.get(column.name, ()),
    )
    target = _target(table, column.name)
    if target is None:
        return found
    first = FirstSeen() if column.name == RESCUED_DATA else first_seen(table, column.name)
    originals = [
        one for batch in seen.rows.to_batches() for one in ColumnReader(target).read(batch)
    ]
    casts = {type: _casts(originals, type) for type in LakeType}
    is_fixed = column.name in _fixed(target)
    return Passport(
        found.column,
        found.fill,
        found.silent,
        found.values,
        _kinds(originals, target.column.type),
        found.frequent,
        found.rescued,
        {} if is_fixed else casts,
        target.requested,
        None if is_fixed or target.requested else _proposal(target, originals, casts),
        first,
    )


def _target(table: "Table", name: str) -> Target | None:
    owner = table.owner
    for column in owner.schema.columns if owner else ():
        if owner and column.name == name:
            return Target(owner.source, owner.schema, column, owner.requested.get(name))
    return None


def _fixed(target: Target) -> set[str]:
    """The columns whose type cannot change."""
    naming = target.source.naming
    return {RESCUED_DATA, *(column.name(naming) for column in STANDARD_COLUMNS)}


def _frequent(values: pa.ChunkedArray) -> tuple[tuple[str, int], ...]:
    if not _is_plain(values):
        return ()
    counts = pc.value_counts(values.drop_null())
    pairs = zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)
    most = sorted(pairs, key=lambda pair: -pair[1])[:_EXAMPLES]
    return tuple((shown(value), count) for value, count in most)


def _casts(originals: Iterable[Original], into: LakeType) -> CastCounts:
    outcomes = Counter[Outcome]()
    for one in originals:
        outcomes[cast(one.value, into)[1]] += one.count
    return CastCounts(**{outcome.value: count for outcome, count in outcomes.items()})


def _kinds(originals: Iterable[Original], type: LakeType) -> dict[str, int]:
    """What the values are; of those in a string column, also what they spell."""
    found = Counter[str]()
    for one in originals:
        kind = _KINDS[kind_of(one.value)]
        if kind == "text" and type is LakeType.STRING and not one.is_rescued:
            kind = _spelled(text_of(one.value))
        found[kind] += one.count
    return dict(found.most_common())


def _spelled(text: str) -> str:
    if Number.parse(text):
        return "text that spells a number"
    if text.lower() in ("true", "false"):
        return "text that spells true or false"
    return "array" if text[:1] == "[" and text[-1:] == "]" else "text"


def _proposal(
    target: Target, originals: list[Original], casts: Mapping[LakeType, CastCounts]
) -> Proposal | None:
    """Another type, if values do not fit the present one, or all fit one that says more."""
    type, values = target.column.type, sum(one.count for one in originals)
    has = casts[type]
    fitting = [t for t in _NARROW_FIRST if values and casts[t].exact == values and t != type]
    # Text instead of rounded numbers, or for the sake of a few mistakes, is no gain.
    if has.failed < max(1, values * _MISTAKES):
        fitting = [t for t in fitting if t is not LakeType.STRING]
    if type is LakeType.STRING:
        fitting = [t for t in fitting if values >= _FEW and _says_more(originals, t)]
    if not fitting:
        return None
    if lost := has.lossy + has.failed:
        reason = f"{lost:,} of {values:,} values do not fit {type.sql}, all fit {fitting[0].sql}."
    else:
        reason = f"All {values:,} values are {_NAMES[fitting[0]]}."
    return Proposal(fitting[0], reason)


_NAMES = {
    LakeType.BOOLEAN: "true or false",
    LakeType.BIGINT: "integers",
    LakeType.DECIMAL: "numbers",
    LakeType.TIMESTAMP: "dates",
}


def _says_more(originals: list[Original], type: LakeType) -> bool:
    """Whether texts lose nothing as values: `007` is no number, and no two numbers are an id."""
    if type in (LakeType.BOOLEAN, LakeType.TIMESTAMP):
        return True
    if all(one.count == 1 for one in originals):
        return False
    return all(text_of(one.value) == str(cast(one.value, type)[0]) for one in originals)


def added_columns(table: "Table") -> dict[str, RunReport]:
    """The run that added each column, of the last 90 days."""
    owner, last = table.owner, now().date()
    if owner is None:
        return {}
    found: dict[str, RunReport] = {}
    first = last - timedelta(days=_REPORT_DAYS - 1)
    for run in table.past.runs(table.lake, owner.source, first, last):
        for line in run.tables:
            if (line.database, line.table_name) == (table.entry.database, table.entry.name):
                found |= dict.fromkeys((one.name for one in line.new_columns or ()), run)
    return found


def first_seen(table: "Table", column: str) -> FirstSeen:
    """The run that added a column, and its first event: by footers, then one file is read."""
    run = added_columns(table).get(column)
    for partition in _oldest(table, run):
        if filled_rows(table.storage, partition)[1].get(column):
            return _first_event(table, run, column, partition)
    return FirstSeen(run)


def _oldest(table: "Table", run: RunReport | None) -> list[CatalogPartition]:
    """Where the first value may be: the partitions of the run that added it, else the oldest."""
    partitions = sorted(table.partitions(), key=lambda one: one.values)
    lines = () if run is None else run.tables
    written = {
        tuple(one[key] for key in table.entry.partition_keys)
        for line in lines
        if line.table_name == table.entry.name
        for one in line.partitions or ()
    }
    known = [one for one in partitions if one.values in written]
    return known or partitions[:_OLDEST]


def _first_event(
    table: "Table", run: RunReport | None, column: str, partition: CatalogPartition
) -> FirstSeen:
    naming = table.owner.source.naming if table.owner else Naming.NATIVE
    id, received = (one.name(naming) for one in (MESSAGE_ID, RECEIVED_AT))
    rows = table.rows_of([partition], filter=pc.field(column).is_valid())
    if not len(rows):  # all of suppressed people
        return FirstSeen(run)
    first = rows.sort_by(received)[:1].to_pylist()[0]
    library = " ".join(filter(None, (first.get(name) for name in _LIBRARY)))
    return FirstSeen(run, first[id] or "", first[received], library)
