"""The table of records: every record log, for SQL, as long as it is kept; and its metadata."""

import json
from datetime import UTC, datetime
from typing import Any

import duckdb

from eventlake.catalog.sync_records import NAME
from eventlake.catalog.sync_reports import DATABASE
from eventlake.checks.repair import repair_catalog
from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.sql import LakeSql
from eventlake.upkeep.removal import remove_expired_logs
from tests.support.lakes.archive import order, track
from tests.support.lakes.recorded import LINES
from tests.support.lakes.runs import Runs

BY_STATUS = "SELECT run_id, status, count(*) AS n FROM sync_records GROUP BY ALL ORDER BY ALL"


def asked(lake: Lake, sql: str) -> list[tuple[Any, ...]]:
    table = LakeSql(lake.catalog, lake.storage).query(sql)
    return [tuple(row.values()) for row in table.to_pylist()]


def test_every_record_is_in_the_table_until_its_log_expires(runs: Runs, lake: Lake) -> None:
    first = [("R1", status, n) for status, n in asked_statuses(lake)]
    assert asked(lake, BY_STATUS) == first and len(first) == 4
    assert sum(n for _, _, n in first) == len(LINES)
    runs.load("2026-10-02", order("m9", "2026-10-02T07:00"))
    keys = "SELECT DISTINCT source_id, day, run_id FROM sync_records ORDER BY ALL"
    assert asked(lake, keys) == [("S1", "2026-10-20", "R1"), ("S1", "2026-10-20", "R2")]
    one_run = "SELECT identifier, table_name FROM sync_records WHERE run_id = 'R2'"
    assert asked(lake, one_run) == [("m9", "track_order")]

    repair_catalog(lake, lake.settings.sources[0], lambda lease: None)
    assert len(asked(lake, keys)) == 2

    at = datetime(2026, 11, 3, 0, 2, tzinfo=UTC)
    remove_expired_logs(lake.storage, lake.catalog, lake.settings, lake.settings.sources[0], at)
    assert asked(lake, keys) == [("S1", "2026-10-20", "R2")]
    assert len(lake.storage.files(paths.listed_records())) == 1


def asked_statuses(lake: Lake) -> list[tuple[str, int]]:
    """By the files of the log, as in the query that the documentation shows."""
    folder = lake.storage.full(paths.tracking("W1", "S1", "R1"))
    files = f"read_parquet('{folder}/*.parquet', union_by_name=True)"
    with duckdb.connect() as connection:
        query = f"SELECT status, count(*) FROM {files} GROUP BY 1 ORDER BY 1"
        return connection.execute(query).fetchall()


def test_the_table_lists_files_that_engines_find_by_their_uri(lake: Lake) -> None:
    [partition] = lake.catalog.partitions(DATABASE, NAME)
    listed = (lake.storage.read(f"{partition.location}/files.txt") or b"").decode().splitlines()
    folder = lake.storage.full(paths.tracking("W1", "S1", "R1"))
    assert all(uri.startswith(f"{folder}/records_") and uri.endswith(".parquet") for uri in listed)
    assert len(listed) == len(lake.storage.files(paths.tracking("W1", "S1", "R1"))) - 1


def test_metadata_map_the_fields_of_payloads_to_the_json_types_that_were_seen(runs: Runs) -> None:
    """Also of columns that the table has already, and of all units of the run."""

    def schema(run: str) -> dict[str, Any]:
        path = f"{paths.tracking('W1', 'S1', run)}/metadata.json"
        found: dict[str, Any] = json.loads(runs.storage.read(path) or b"{}")
        assert found["state"] == "finished"
        types: dict[str, Any] = found["record_payload_schema"]
        return types

    values = {"total": 1.5, "paid": True, "tags": ["a"], "at": "2026-10-01", "gift": {"to": "x"}}
    runs.load("2026-10-03", track("Order", "n1", "2026-10-03T07:00", **values))
    types = {
        "/properties/at": "string",
        "/properties/gift/to": "string",
        "/properties/paid": "boolean",
        "/properties/tags": "array",
        "/properties/total": "number",
    }
    seen = schema("R2")
    assert {at: type for at, type in seen.items() if at.startswith("/properties")} == types
    assert seen["/messageId"] == seen["/receivedAt"] == "string"

    runs.load(
        "2026-10-04",
        track("Order", "n2", "2026-10-04T07:00", total="free"),
        track("Order", "n3", "2026-10-04T07:00", total=2),
    )
    assert schema("R3")["/properties/total"] == ["number", "string"]
