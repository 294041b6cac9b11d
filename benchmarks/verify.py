"""Whether tables hold what they must: rows, hours, ids, which copy was kept, sums."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from benchmarks.column_key import column_key
from benchmarks.contestants import Tables
from benchmarks.truth import TableTruth, Truth

_CLOSE = 1e-7  # sums of doubles, and of coordinates cut at six places
_MOST_TOLD = 12
_NUMERIC = ("DECIMAL", "DOUBLE", "FLOAT", "INTEGER", "BIGINT", "HUGEINT", "SMALLINT", "TINYINT")


def wrongs(tables: Tables, truth: Truth, *, hours: bool) -> list[str]:
    """What is wrong, in words; nothing if the result is right."""
    found = list(_wrongs(tables, truth, hours))
    more = len(found) - _MOST_TOLD
    return found if more <= 0 else [*found[:_MOST_TOLD], f"… and {more} more"]


def _wrongs(tables: Tables, truth: Truth, hours: bool) -> Iterator[str]:
    if missing := truth.tables.keys() - tables.keys():
        yield f"tables missing: {', '.join(sorted(missing))}"
    if unknown := tables.keys() - truth.tables.keys():
        yield f"tables that should not be: {', '.join(sorted(unknown))}"
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'; SET threads = 2")
        for name in sorted(tables.keys() & truth.tables.keys()):
            for wrong in _wrongs_of_table(connection, tables[name], truth.tables[name]):
                yield f"{name}: {wrong}"
        yield from _wrong_ids(connection, tables, truth)
    if hours:
        yield from _wrong_hours(tables, truth)


def _wrongs_of_table(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Path], truth: TableTruth
) -> Iterator[str]:
    source = connection.read_parquet([str(file) for file in files], union_by_name=True)
    columns = dict(zip(source.columns, map(str, source.types), strict=True))
    numeric = [name for name, type in columns.items() if type.startswith(_NUMERIC)]
    asked = [
        "count(*)",
        "sum(epoch_ms(received_at::TIMESTAMP))",
        *(f'sum("{name}")' for name in numeric),
    ]
    rows, received, *totals = source.aggregate(", ".join(asked)).fetchall()[0]
    if rows != truth.rows:
        yield f"{rows} rows instead of {truth.rows}"
    if int(received or 0) != truth.received_ms:
        yield "another copy of an event than the earliest was kept"
    sums: dict[str, float] = {}
    for name, total in zip(numeric, totals, strict=True):
        sums[column_key(name)] = sums.get(column_key(name), 0.0) + float(total or 0)
    for key, wanted in truth.sums.items():
        if key not in sums:
            yield f"no numeric column for {key}; its numbers add up to {wanted}"
        elif not math.isclose(sums[key], wanted, rel_tol=_CLOSE, abs_tol=1e-3):
            yield f"{key} adds up to {sums[key]} instead of {wanted}"


def _wrong_ids(
    connection: duckdb.DuckDBPyConnection, tables: Tables, truth: Truth
) -> Iterator[str]:
    files = [str(file) for files in tables.values() for file in files]
    answer = connection.read_parquet(files, union_by_name=True).aggregate(
        "count(message_id), count(DISTINCT message_id)"
    )
    ids, distinct = answer.fetchall()[0]
    if (ids, distinct) != (truth.rows, truth.rows):
        yield f"{ids} message ids, {distinct} distinct, instead of {truth.rows}"


def _wrong_hours(tables: Tables, truth: Truth) -> Iterator[str]:
    """By the folders that the files lie in: `day=2026-10-01/hr=07`."""
    found = Counter[str]()
    for name, files in tables.items():
        for file in files:
            keys = dict(part.split("=") for part in file.parts if part.startswith(("day=", "hr=")))
            found[f"{name}/{keys['day']}/{keys['hr']}"] += pq.read_metadata(file).num_rows
    for slot in sorted(found.keys() | truth.slots.keys()):
        if found[slot] != truth.slots.get(slot, 0):
            yield f"{slot}: {found[slot]} rows instead of {truth.slots.get(slot, 0)}"
