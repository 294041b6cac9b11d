"""The Python API over a small lake: its docstrings run as written, and what they do not show."""

import doctest
import sys
from collections.abc import Iterator
from datetime import date, timedelta
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import eventlake
from eventlake.api import EventLake
from eventlake.api import lake as lake_api
from eventlake.api.health import Change, Level, change
from eventlake.api.lake import LAUNCHERS
from eventlake.api.past import DayVolume
from eventlake.rules.errors import UsageError
from eventlake.sample import WEB_SHOP, SampleSpec, write_archive
from tests.support.lakes.jobs import drained
from tests.support.lakes.settings import lake_in
from tests.support.repo import ROOT

MODULES = ["eventlake", *(f"eventlake.api.{one}" for one in ("lake", "tables", "records"))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of one source, into which two days were synced."""
    folder = tmp_path_factory.mktemp("api")
    lake = lake_in(folder, WEB_SHOP)
    sample = SampleSpec(days=2, events_per_day=80, files_per_day=2, hours=3)
    for arrived in (1, 2):
        write_archive(folder / "data", sample, arrived=arrived)
        drained(lake.settings)
    return folder


@pytest.fixture
def my(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EventLake]:
    monkeypatch.chdir(folder)
    monkeypatch.delenv("DATALAKE_CONFIG", raising=False)
    yield eventlake.open("lake.yaml")


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_docstrings_are_true(module: str, my: EventLake) -> None:
    done = doctest.testmod(import_module(module), extraglobs={"my": my})
    assert done.attempted > 0
    assert done.failed == 0


def test_every_public_method_is_documented(my: EventLake) -> None:
    names = [name for name in dir(EventLake) if not name.startswith("_")]
    silent = [name for name in names if not getattr(EventLake, name, "").__doc__]
    assert [name for name in silent if name not in ("databases", "of_file", "launcher")] == []


def test_one_scan_is_the_same_rows_for_every_library(my: EventLake, tmp_path: Path) -> None:
    day = pc.field("day") == "2026-10-02"
    scan = my.table("web_shop.page").scan(["message_id", "hr"], day)
    rows = sorted(map(tuple, (row.values() for row in scan.arrow().to_pylist())))
    assert rows
    assert sorted(scan.duckdb().fetchall()) == rows
    assert sorted(scan.pandas().itertuples(index=False, name=None)) == rows
    assert sorted(scan.polars().rows()) == rows
    assert sum(map(len, scan.reader())) == len(rows)
    sql = "SELECT message_id, hr FROM web_shop.page WHERE day = '2026-10-02' ORDER BY ALL"
    assert [tuple(row.values()) for row in my.sql(sql).to_pylist()] == rows
    reports = my.table("__segment_datalake.sync_reports").scan(["status", "row_count"])
    assert reports.arrow().num_rows == reports.duckdb().count("*").fetchall()[0][0]


def test_polars_has_every_type_of_the_lake(my: EventLake) -> None:
    scan = my.table("web_shop.track_order_completed").scan()
    rows = [tuple(row.values()) for row in scan.arrow().to_pylist()]
    types = {str(kind) for kind in scan.polars().schema.values()}
    assert {"String", "Int64", "Boolean", "Decimal(precision=38, scale=6)"} <= types
    assert any(kind.startswith("Datetime") for kind in types)
    assert scan.polars().rows() == rows


def test_without_polars_the_error_says_what_to_do(
    my: EventLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(UsageError, match="pip install polars"):
        my.table("web_shop.page").scan().polars()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda my: my.table("page"), "write `database.table`"),
        (lambda my: my.table("web_shop.pagee"), "did you mean 'page'"),
        (lambda my: my.table("web_shop.page").scan(["message"]), "has no column 'message'"),
        (lambda my: my.tables("shop"), "There is no database 'shop'"),
        (lambda my: my.report("nope"), "No report has the run id 'nope'"),
        (lambda my: my.records("nope"), "No run of web_shop has the id 'nope'"),
    ],
)
def test_problems_are_reported(wrong: object, message: str, my: EventLake) -> None:
    with pytest.raises(UsageError, match=message):
        wrong(my)  # type: ignore[operator]


def test_pages_of_records_are_all_records_once(my: EventLake, tmp_path: Path) -> None:
    records = my.records()
    cursor, found, pages = None, list[tuple[str, int]](), 0
    while pages == 0 or cursor is not None:
        table, cursor = records.page(cursor, size=10)
        found += zip(*(table[name].to_pylist() for name in ("raw_file", "raw_line")), strict=True)
        pages += 1
    everything = records.arrow()
    assert (
        len(found)
        == len(set(found))
        == everything.num_rows
        == records.download(tmp_path / "all.parquet")
    )
    assert pages == -(-everything.num_rows // 10)
    assert pq.read_metadata(tmp_path / "all.parquet").num_rows == everything.num_rows
    table, end = records.page(text="THE same MessageId")
    assert end is None
    assert table["status"].to_pylist() == records.of("DUPLICATE").arrow()["status"].to_pylist()


def test_health_is_what_the_reports_and_the_catalog_say(my: EventLake) -> None:
    newest = next(my.reports())
    health = my.health(days=400, at=newest.finished)
    (source,) = health.sources
    assert health.level is source.level is Level.OK
    assert [run.run_id for run in source.runs] == [run.run_id for run in my.reports()]
    rows = sum(table.size().rows for table in my.tables("web_shop"))
    assert sum(day.rows for day in source.volume.values()) == rows
    assert sum(sum(day.hours) for day in source.volume.values()) == rows
    assert source.last_day.rows == sum(run.source.row_count for run in my.reports())
    assert sum(counts.rows for counts in source.by_day.values()) == source.last_day.rows


def test_a_source_without_syncs_is_new(tmp_path: Path) -> None:
    lake = lake_in(tmp_path, WEB_SHOP)
    assert EventLake(lake).health().level is Level.WARNING  # there is no archive either
    write_archive(tmp_path / "data", SampleSpec(days=1, events_per_day=5, files_per_day=1, hours=1))
    assert EventLake(lake).health().level is Level.NEW


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ({1: 10, 7: 10, 8: 20, 14: 20}, Change(20, 40)),
        ({0: 99, 15: 99, 3: 5}, Change(5, 0)),
        ({}, Change(0, 0)),
    ],
)
def test_a_week_is_compared_with_the_one_before(rows: dict[int, int], expected: Change) -> None:
    today = date(2026, 10, 31)
    volume = {str(today - timedelta(days=n)): DayVolume(count) for n, count in rows.items()}
    found = change(volume, today)
    assert found == expected
    assert found.notable == (found.before > 0)


def test_reports_and_pages_are_read_again_only_if_they_changed(my: EventLake) -> None:
    at = next(my.reports()).finished
    before = my.health(at=at)
    reads = []
    storage = my.lake.storage
    read_many = type(storage).read_many

    def counted(self: object, paths: list[str]) -> object:
        reads.extend(paths)
        return read_many(storage, paths)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(storage), "read_many", counted)
        assert my.past.volumes(my.lake, my.sources[0]) == before.sources[0].tables
        days = at.date(), at.date()
        assert len(my.past.runs(my.lake, my.sources[0], *days)) == len(before.sources[0].runs)
    assert reads == []


def test_the_public_names_are_in_the_docs() -> None:
    text = (ROOT / "docs/python.md").read_text()
    methods = [name for name in vars(EventLake) if not name.startswith("_")]
    left_out = {"lake", "launcher", "past", "of_file", "sources"}
    assert [name for name in methods if name not in left_out and f".{name}(" not in text] == []


def test_runs_are_started_by_the_package_that_can(
    my: EventLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    (launcher,) = entry_points(group=LAUNCHERS)
    assert launcher.value == "datalake_assets.launch:DagsterLauncher"
    monkeypatch.setattr(lake_api, "entry_points", lambda group: ())
    with pytest.raises(UsageError, match="No package that starts runs"):
        my.sync()


def test_records_of_a_user_are_those_of_the_raw_lines(my: EventLake) -> None:
    records = my.records()
    rows = my.sql("SELECT user_id, message_id FROM web_shop.identify").to_pylist()
    user = rows[-1]["user_id"]
    found = records.of_user(user).to_pylist()
    payloads = [records.find(one["identifier"])[0][0]["record_payload"] for one in found]
    assert payloads
    assert all(f'"{user}"' in payload for payload in payloads)
    everything = [
        (record["raw_file"], record["raw_line"])
        for one in records.arrow()["identifier"].unique().to_pylist()
        for record in records.find(one)[0]
        if f'"userId":"{user}"' in (record["record_payload"] or "").replace(": ", ":")
    ]
    shown = {(one["raw_file"], one["raw_line"]) for one in found}
    assert set(everything) <= shown
    assert records.of_user("nobody").num_rows == 0
