"""What the tables must contain, computed from the raw JSON, and how a result differs from it."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import duckdb
import msgspec
import pyarrow.parquet as pq

from benchmarks.programs.common import table_name

Tables: TypeAlias = dict[str, list[Path]]  # Parquet files by table name

_TOLERANCE = 1e-7  # for sums of doubles, and of coordinates cut to six decimals
_MAX_REPORTED = 12
_NUMERIC = ("DECIMAL", "DOUBLE", "FLOAT", "INTEGER", "BIGINT", "HUGEINT", "SMALLINT", "TINYINT")
_DLT_VARIANT = re.compile(r"__v_[a-z0-9_]+$")
_NO_LETTER_OR_DIGIT = re.compile(r"[^a-z0-9]+")

_READ = "CREATE TABLE lines AS SELECT json FROM read_ndjson_objects($files)"
_SIZE = "SELECT count(*), sum(strlen(json) + 1)::BIGINT FROM lines"  # with line breaks
# Keeps the earliest copy of each event; if the times are equal, the first one in the archive.
_DEDUPLICATE = """
CREATE TABLE events AS
SELECT json, table_name(json->>'type', coalesce(json->>'event', '')) AS name,
       (json->>'receivedAt')::TIMESTAMP AS received
FROM lines WHERE rowid IN (
    SELECT rowid FROM lines
    QUALIFY row_number() OVER (
        PARTITION BY json->>'messageId' ORDER BY (json->>'receivedAt')::TIMESTAMP, rowid) = 1)
"""
_COUNT = "SELECT name, count(*), sum(epoch_ms(received))::BIGINT FROM events GROUP BY name"
_COUNT_HOURS = """
SELECT name || strftime(received, '/%Y-%m-%d/%H'), count(*) FROM events GROUP BY ALL
"""
# Without array elements, whose path has an index, and without the top-level `version`, which some
# contestants store as text.
_ADD_UP = """
SELECT name, fullkey, leaf.type IN ('UBIGINT', 'BIGINT', 'HUGEINT', 'DOUBLE') AS numeric,
       sum(CASE WHEN numeric THEN leaf.atom::DOUBLE END)
FROM events, json_tree(events.json) AS leaf
WHERE leaf.type NOT IN ('OBJECT', 'NULL') AND fullkey NOT LIKE '%[%' AND fullkey <> '$.version'
GROUP BY ALL
"""


class TableTruth(msgspec.Struct):
    """Expected rows, sum of their receive times, and sums of numeric columns by column key."""

    rows: int = 0
    received_ms: int = 0
    sums: dict[str, float] = {}

    def then(self, later: "TableTruth") -> "TableTruth":
        """Without sums: the first load sets the types, and later values may be cut to fit them."""
        return TableTruth(self.rows + later.rows, self.received_ms + later.received_ms)


class Truth(msgspec.Struct):
    """What the tables of an archive must contain; the keys of `slots` are `table/day/hour`."""

    lines: int
    bytes: int  # of JSON, unpacked
    duplicates: int
    tables: dict[str, TableTruth]
    slots: dict[str, int]

    @property
    def rows(self) -> int:
        return self.lines - self.duplicates

    def then(self, later: "Truth") -> "Truth":
        """After loading a second archive that has no ids and no hours in common with this one."""
        return Truth(
            self.lines + later.lines,
            self.bytes + later.bytes,
            self.duplicates + later.duplicates,
            {
                name: self.tables.get(name, TableTruth()).then(later.tables.get(name, TableTruth()))
                for name in self.tables.keys() | later.tables.keys()
            },
            self.slots | later.slots,
        )


def truth_of(files: Sequence[Path]) -> Truth:
    """Compute with DuckDB, which shares no code with our engine."""
    with (
        TemporaryDirectory(dir=files[0].parent) as folder,
        duckdb.connect(Path(folder, "truth.duckdb"), config={"memory_limit": "4GB"}) as connection,
    ):
        connection.create_function("table_name", table_name, ["VARCHAR", "VARCHAR"], "VARCHAR")
        connection.execute(_READ, {"files": [str(file) for file in files]})
        ((lines, size),) = connection.execute(_SIZE).fetchall()
        connection.execute(_DEDUPLICATE)
        slots = dict(connection.execute(_COUNT_HOURS).fetchall())
        counts = connection.execute(_COUNT).fetchall()
        sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        not_numeric: set[tuple[str, str]] = set()
        for name, path, numeric, total in connection.execute(_ADD_UP).fetchall():
            if numeric:
                sums[name][column_key(path)] += total
            else:
                not_numeric.add((name, column_key(path)))
    tables = {
        name: TableTruth(
            rows,
            received_ms,
            {key: total for key, total in sums[name].items() if (name, key) not in not_numeric},
        )
        for name, rows, received_ms in counts
    }
    return Truth(lines, size, lines - sum(slots.values()), tables, slots)


def column_key(name: str) -> str:
    """The same for `$.properties.productID`, `properties_product_id` and dlt's variant columns."""
    return _NO_LETTER_OR_DIGIT.sub("", _DLT_VARIANT.sub("", name).lower())


def errors_in(tables: Tables, truth: Truth, *, hours: bool) -> list[str]:
    """Describe how the tables differ from what they must contain; empty if they are correct."""
    found = list(_errors(tables, truth, hours))
    more = len(found) - _MAX_REPORTED
    return found if more <= 0 else [*found[:_MAX_REPORTED], f"… and {more} more"]


def _errors(tables: Tables, truth: Truth, hours: bool) -> Iterator[str]:
    if missing := truth.tables.keys() - tables.keys():
        yield f"missing tables: {', '.join(sorted(missing))}"
    if unknown := tables.keys() - truth.tables.keys():
        yield f"unexpected tables: {', '.join(sorted(unknown))}"
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'; SET threads = 2")
        for name in sorted(tables.keys() & truth.tables.keys()):
            for error in _errors_of_table(connection, tables[name], truth.tables[name]):
                yield f"{name}: {error}"
        yield from _errors_of_ids(connection, tables, truth)
    if hours:
        yield from _errors_of_hours(tables, truth)


def _errors_of_table(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Path], truth: TableTruth
) -> Iterator[str]:
    source = connection.read_parquet([str(file) for file in files], union_by_name=True)
    columns = dict(zip(source.columns, map(str, source.types), strict=True))
    numeric = [name for name, type in columns.items() if type.startswith(_NUMERIC)]
    aggregates = [
        "count(*)",
        "sum(epoch_ms(received_at::TIMESTAMP))",
        *(f'sum("{name}")' for name in numeric),
    ]
    rows, received, *totals = source.aggregate(", ".join(aggregates)).fetchall()[0]
    if rows != truth.rows:
        yield f"{rows} rows instead of {truth.rows}"
    if int(received or 0) != truth.received_ms:
        yield "not the earliest copy of every event"
    sums: dict[str, float] = {}
    for name, total in zip(numeric, totals, strict=True):
        sums[column_key(name)] = sums.get(column_key(name), 0.0) + float(total or 0)
    for key, expected in truth.sums.items():
        if key not in sums:
            yield f"no numeric column for {key}, whose sum must be {expected}"
        elif not math.isclose(sums[key], expected, rel_tol=_TOLERANCE, abs_tol=1e-3):
            yield f"the sum of {key} is {sums[key]} instead of {expected}"


def _errors_of_ids(
    connection: duckdb.DuckDBPyConnection, tables: Tables, truth: Truth
) -> Iterator[str]:
    files = [str(file) for files in tables.values() for file in files]
    ids, distinct = (
        connection.read_parquet(files, union_by_name=True)
        .aggregate("count(message_id), count(DISTINCT message_id)")
        .fetchall()[0]
    )
    if (ids, distinct) != (truth.rows, truth.rows):
        yield f"{ids} message ids, {distinct} distinct, instead of {truth.rows}"


def _errors_of_hours(tables: Tables, truth: Truth) -> Iterator[str]:
    """Compare rows by hour, which is part of a file's path: `day=2026-10-01/hr=07`."""
    found = Counter[str]()
    for name, files in tables.items():
        for file in files:
            keys = dict(part.split("=") for part in file.parts if part.startswith(("day=", "hr=")))
            found[f"{name}/{keys['day']}/{keys['hr']}"] += pq.read_metadata(file).num_rows
    for slot in sorted(found.keys() | truth.slots.keys()):
        if found[slot] != truth.slots.get(slot, 0):
            yield f"{slot}: {found[slot]} rows instead of {truth.slots.get(slot, 0)}"
