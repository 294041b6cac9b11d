"""A lake on S3 with its tables in Glue is the same lake as one in a folder."""

from pathlib import Path

import pytest

from eventlake.catalog.sync_reports import DATABASE, NAME
from eventlake.sql import LakeSql
from tests.support.lakes.glue_runs import PLACE, GlueRuns, story, told
from tests.support.lakes.runs import Runs
from tests.support.servers.aws import AwsServer
from tests.support.servers.glue import strict_glue


@pytest.fixture
def both(tmp_path: Path, aws: AwsServer, monkeypatch: pytest.MonkeyPatch) -> tuple[Runs, GlueRuns]:
    strict_glue(aws, monkeypatch)
    return Runs(tmp_path / "folder"), GlueRuns(tmp_path / "s3", aws)


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
