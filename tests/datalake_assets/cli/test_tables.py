"""`datalake tables`."""

import pytest

from eventlake.catalog import sync_reports
from tests.support.lakes.sample_lake import SampleLake
from tests.support.terminal import Terminal


def test_before_the_first_sync_there_are_none(terminal: Terminal, unsynced: SampleLake) -> None:
    said = terminal.run("tables")
    assert (said.code, said.out) == (0, "")
    assert "No tables yet" in said.err
    assert terminal.run("tables", "--json").json == []


def test_every_table_with_its_rows_and_partitions(terminal: Terminal, filled: SampleLake) -> None:
    found = terminal.run("tables", "--json").json
    loads = filled.account.as_they_arrive("9IP56Shn6")
    expected = filled.account.expected("9IP56Shn6", [load for sync in loads for load in sync]).rows
    assert {
        t["table"]: (t["rows"], t["partitions"]) for t in found if t["database"] == "ios_prod"
    } == {
        table: (
            sum(n for slot, n in expected.items() if slot.table == table),
            sum(1 for slot in expected if slot.table == table),
        )
        for table in {slot.table for slot in expected}
    }
    assert {t["database"] for t in found} == {"__segment_datalake", "ios_prod", "web_shop"}
    screen = next(t for t in found if t["table"] == "screen")
    assert screen["files"] >= screen["partitions"]
    assert screen["bytes"] > 0
    assert screen["location"] == "segment-data/data/9IP56Shn6/segment_type=screen"


def test_of_one_database(terminal: Terminal, filled: SampleLake) -> None:
    said = terminal.run("tables", "web_shop")
    assert {row[0] for row in said.rows} == {"web_shop"}
    assert ["web_shop", "page"] in [row[:2] for row in said.rows]


def test_the_table_of_reports_has_no_count_of_rows(terminal: Terminal, filled: SampleLake) -> None:
    [reports] = terminal.run("tables", "__segment_datalake", "--json").json
    assert (reports["table"], reports["rows"]) == (sync_reports.NAME, None)
    keys = len(sync_reports.SYNC_REPORTS.partition_keys)
    assert reports["columns"] == len(sync_reports.COLUMNS) + keys


def test_the_columns_of_one_table_with_where_they_come_from(
    terminal: Terminal, filled: SampleLake
) -> None:
    columns = terminal.run("tables", "web_shop.track_order_completed", "--json").json
    assert columns[0] == {
        "name": "message_id",
        "type": "string",
        "path": "/messageId",
        "partition_key": False,
        "wished_type": None,
    }
    by_name = {column["name"]: column for column in columns}
    assert by_name["properties_total"]["type"] == "decimal(38,6)"
    assert by_name["properties_total"]["path"] == "/properties/total"
    assert [c["name"] for c in columns if c["partition_key"]] == ["day", "hr"]
    said = terminal.run("tables", "web_shop.track_order_completed")
    assert said.out.startswith("web_shop.track_order_completed: Order Completed, ")
    assert said.rows[0] == ["message_id", "string", "/messageId"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("web_shp", "no database 'web_shp'; did you mean 'web_shop'?"),
        ("web_shop.pge", "no table 'pge'; did you mean 'page'? `datalake tables web_shop`"),
        ("x.y", "databases: __segment_datalake, ios_prod, web_shop"),
    ],
)
def test_unknown_names_are_wrong_use(
    terminal: Terminal, filled: SampleLake, name: str, told: str
) -> None:
    said = terminal.run("tables", name)
    assert said.code == 2
    assert told in said.err
