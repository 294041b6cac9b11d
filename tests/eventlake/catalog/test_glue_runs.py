"""A lake on S3 with its tables in Glue is the same lake as one in a folder."""

from pathlib import Path
from typing import Any

import pytest

from eventlake.catalog.sync_reports import DATABASE, NAME
from eventlake.sql import LakeSql
from tests.support.lakes.archive import identify, page, track
from tests.support.lakes.glue_runs import PLACE, GlueRuns
from tests.support.lakes.retyping import wish
from tests.support.lakes.runs import Runs
from tests.support.servers.aws import AwsServer
from tests.support.servers.glue import strict_glue


@pytest.fixture
def both(tmp_path: Path, aws: AwsServer, monkeypatch: pytest.MonkeyPatch) -> tuple[Runs, GlueRuns]:
    strict_glue(aws, monkeypatch)
    return Runs(tmp_path / "folder"), GlueRuns(tmp_path / "s3", aws)


def story(runs: Runs) -> None:
    """New tables, new columns, late rows, a replay that empties an hour, and another type."""
    day = runs.archive.day("2026-10-01")
    day.file(
        "a",
        track("Order", "m1", "2026-10-01T07:00", n=1, price=1.5),
        track("Order", "m2", "2026-10-01T08:00", n=2, tags=["a", "b"]),
        identify("m3", "2026-10-01T07:30", email="a@example.org"),
    )
    runs.sync()
    runs.archive.day("2026-10-02").file(
        "b",
        track("Order", "m4", "2026-10-01T07:59", n=3, coupon="x"),
        page("m5", "2026-10-02T00:00", **{"the title": "Home", "注册": True}),
        track("Order", "m6", "2026-10-02T00:10", n="many"),
    )
    runs.sync()
    day.file(
        "a",
        track("Order", "m1", "2026-10-01T07:00", n=1, price=1.5),
        identify("m3", "2026-10-01T07:30", email="a@example.org"),
    )
    runs.replay("2026-10-01", "2026-10-02")
    wish(runs, "track_order.n", "string")
    runs.replay("2026-10-01", "2026-10-03", "track_order")


def told(runs: Runs) -> dict[str, Any]:
    """All that the catalog says, but for the place of the lake."""
    found: dict[str, Any] = {}
    for database in runs.catalog.databases():
        for table in runs.catalog.tables(database):
            found[table.full_name] = (
                table,
                runs.catalog.partitions(database, table.name),
            )
    return found


def test_tables_are_the_same_as_in_the_embedded_catalog(
    both: tuple[Runs, GlueRuns], aws: AwsServer
) -> None:
    folder, glue = both
    story(folder)
    story(glue)
    assert told(glue) == told(folder)
    assert told(glue).keys() == {
        "__segment_datalake.sync_reports",
        "shop.identify",
        "shop.page",
        "shop.track_order",
    }
    for table_name in ("identify", "page", "track_order"):
        assert glue.rows(table_name) == folder.rows(table_name)
    client = aws.client("glue")
    event_table = client.get_partitions(DatabaseName="shop", TableName="identify")["Partitions"]
    reports = client.get_partitions(DatabaseName=DATABASE, TableName=NAME)["Partitions"]
    places = [one["StorageDescriptor"]["Location"] for one in (*event_table, *reports)]
    assert places == [
        f"{PLACE}/segment-data/data/S1/_v/R3/segment_type=identify/day=2026-10-01/hr=07/",
        f"{PLACE}/segment-data/reports/day=2026-10-20/source=S1/",
    ]


def test_sql_and_reports_read_what_glue_leads_to(both: tuple[Runs, GlueRuns]) -> None:
    _, glue = both
    story(glue)
    sql = LakeSql(glue.catalog, glue.storage)
    rows = sql.query("SELECT message_id, properties_n FROM shop.track_order ORDER BY 1").to_pylist()
    assert [tuple(row.values()) for row in rows] == [("m1", "1"), ("m4", "3"), ("m6", "many")]
    by_table = sql.query(
        "SELECT table_name, sum(row_count) n FROM __segment_datalake.sync_reports "
        "WHERE type = 'event' AND NOT replay GROUP BY 1 ORDER BY 1"
    )
    assert by_table.to_pylist() == [
        {"table_name": "identify", "n": 1},
        {"table_name": "page", "n": 1},
        {"table_name": "track_order", "n": 4},
    ]
    listed = sql.query("SHOW ALL TABLES").to_pylist()
    assert {row["name"] for row in listed} == {"identify", "page", "sync_reports", "track_order"}
