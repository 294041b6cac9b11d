"""A DuckDB script for the same work: load, drop duplicates, infer per table, flatten, copy."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.marks import Marks
from benchmarks.peers.raw import arguments, snake, table_name

THREADS = 2
TIMES = ("receivedAt", "sentAt", "timestamp", "originalTimestamp")
LOAD = """
CREATE TABLE lines AS
SELECT json, f[1] AS message_id, f[2] AS received_at, f[3] AS kind, coalesce(f[4], '') AS event
FROM (SELECT json, json_extract_string(json, [
          '$.messageId', '$.receivedAt', '$.type', '$.event']) AS f
      FROM read_ndjson_objects($files))
"""
DROP_LATER_COPIES = """
DELETE FROM lines WHERE rowid IN (
    SELECT rowid FROM lines
    WHERE message_id IN (SELECT message_id FROM lines GROUP BY ALL HAVING count(*) > 1)
    QUALIFY row_number() OVER (PARTITION BY message_id ORDER BY received_at, rowid) > 1)
"""
# By table, so that reading one of them skips the others.
ARRANGE = """
CREATE TABLE events AS
SELECT table_name, json, received_at FROM lines JOIN names USING (kind, event) ORDER BY table_name
"""
COPY = """
COPY (
    SELECT {columns}, received_at[:10] AS day, received_at[12:13] AS hr
    FROM (SELECT json_transform(json, $structure) AS event, received_at
          FROM events WHERE table_name = $name))
TO '{folder}' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (day, hr))
"""


def main() -> None:
    marks = Marks()
    files, out = arguments()
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {THREADS}; SET preserve_insertion_order = false")
        marks.is_ready()
        with marks.step("load"):
            connection.execute(LOAD, {"files": [str(file) for file in files]})
        with marks.step("dedup"):
            connection.execute(DROP_LATER_COPIES)
        with marks.step("arrange"):
            name_tables(connection)
            connection.execute(ARRANGE)
            connection.execute("DROP TABLE lines")
        with marks.step("infer"):
            structures = connection.execute(
                "SELECT table_name, json_group_structure(json) FROM events GROUP BY table_name"
            ).fetchall()
        out.mkdir()
        with marks.step("copy"), ThreadPoolExecutor(THREADS) as pool:
            for copied in [
                pool.submit(copy_table, connection.cursor(), name, json.loads(structure), out)
                for name, structure in structures
            ]:
                copied.result()
    marks.write()


def name_tables(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE names (kind TEXT, event TEXT, table_name TEXT)")
    pairs = connection.execute("SELECT DISTINCT kind, event FROM lines").fetchall()
    connection.executemany(
        "INSERT INTO names VALUES (?, ?, ?)",
        [(kind, event, table_name(kind, event)) for kind, event in pairs],
    )


def copy_table(
    connection: duckdb.DuckDBPyConnection, name: str, structure: dict[str, Any], out: Path
) -> None:
    shape = without_empties(structure)
    columns = ", ".join(
        f'event.{".".join(map(quoted, path))} AS {quoted("_".join(map(snake, path)))}'
        for path in leaves(shape)
    )
    connection.execute(
        COPY.format(columns=columns, folder=out / name),
        {"structure": json.dumps(shape), "name": name},
    )


def without_empties(structure: dict[str, Any]) -> dict[str, Any]:
    """Arrays stay JSON, numbers get one of two types; what never has a value is no column."""
    shape: dict[str, Any] = {}
    for key, inner in structure.items():
        if isinstance(inner, dict):
            if below := without_empties(inner):
                shape[key] = below
        elif isinstance(inner, list):
            shape[key] = "JSON"
        elif key in TIMES:
            shape[key] = "TIMESTAMP"
        elif inner != "NULL":
            shape[key] = "BIGINT" if inner == "UBIGINT" else inner
    return shape


def leaves(shape: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, inner in shape.items():
        if isinstance(inner, dict):
            yield from leaves(inner, (*above, key))
        else:
            yield *above, key


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


if __name__ == "__main__":
    main()
