"""The same task as a DuckDB script: load, drop duplicates, infer per table, flatten, copy."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.programs.common import TIMES, Marks, peer_arguments, snake

THREADS = 2
NAME_RULE = """
CREATE MACRO snake(name) AS lower(array_to_string(
    regexp_extract_all(name, '[A-Z0-9]+[a-z0-9]*|[a-z0-9]+'), '_'));
CREATE MACRO table_of(kind, event) AS CASE
    WHEN kind <> 'track' THEN kind
    WHEN snake(event) = '' THEN 'track_x_' || sha256(event)[:8]
    ELSE 'track_' || snake(event) END
"""
LOAD = """
CREATE TABLE events AS
SELECT json, f[1] AS message_id, f[2]::TIMESTAMP AS received_at, table_of(f[3], f[4]) AS name
FROM (SELECT json, json_extract_string(json, [
          '$.messageId', '$.receivedAt', '$.type', '$.event']) AS f
      FROM read_ndjson_objects($files))
"""
DROP_LATER_COPIES = """
DELETE FROM events WHERE rowid IN (
    SELECT rowid FROM events
    WHERE message_id IN (SELECT message_id FROM events GROUP BY ALL HAVING count(*) > 1)
    QUALIFY row_number() OVER (PARTITION BY message_id ORDER BY received_at, rowid) > 1)
"""
# One table at a time: inference over all tables at once is slower and takes twice the memory.
INFER = "SELECT json_group_structure(json) FROM events WHERE name = $name"
COPY = """
COPY (
    SELECT {columns}, strftime(received, '%Y-%m-%d') AS day, strftime(received, '%H') AS hr
    FROM (SELECT json_transform(json, $structure) AS event, received_at AS received
          FROM events WHERE name = $name))
TO '{folder}' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (day, hr))
"""


def main() -> None:
    marks = Marks()
    files, out = peer_arguments()
    out.mkdir()
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {THREADS}; SET preserve_insertion_order = false")
        connection.execute(NAME_RULE)
        marks.set_ready()
        with marks.step("load"):
            connection.execute(LOAD, {"files": [str(file) for file in files]})
        with marks.step("dedup"):
            connection.execute(DROP_LATER_COPIES)
        # Largest table first, so that no thread starts it when the others are done.
        names = connection.execute("SELECT name FROM events GROUP BY name ORDER BY -count(*)")
        with marks.step("infer and copy"), ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(partial(copy_table, connection, out), [n for (n,) in names.fetchall()]))
    marks.write()


def copy_table(connection: duckdb.DuckDBPyConnection, out: Path, name: str) -> None:
    cursor = connection.cursor()
    (structure,) = cursor.execute(INFER, {"name": name}).fetchall()[0]
    shape = without_empties(json.loads(structure))
    columns = ", ".join(
        f"event.{'.'.join(map(quoted, path))} AS {quoted('_'.join(map(snake, path)))}"
        for path in leaves(shape)
    )
    copy = COPY.format(columns=columns, folder=out / name)
    cursor.execute(copy, {"structure": json.dumps(shape), "name": name})


def without_empties(structure: dict[str, Any]) -> dict[str, Any]:
    """The structure without fields that never have a value; arrays stay JSON."""
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
