"""Reports, newest first, read no further than asked for."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.rules.counts import NewColumn, TableReport, UnitReport
from eventlake.rules.errors import StateError
from eventlake.runs.open_runs import close_run
from eventlake.runs.report_history import newest_reports
from eventlake.settings.models import Settings
from eventlake.state.report import RunFacts


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    sources = [{"id": "S1", "slug": "shop"}, {"id": "S2", "slug": "app"}]
    given = {"workspace_id": "W1", "storage": str(tmp_path), "sources": sources}
    return Lake.open(Settings.model_validate(given))


def report(lake: Lake, source_id: str, start: str, done: UnitReport | None = None) -> None:
    begun = datetime.fromisoformat(f"2026-10-{start}:00.250+00:00").astimezone(UTC)
    run = RunFacts("W1", source_id, "db", f"{source_id}@{start}", begun, "")
    finish = begun + timedelta(seconds=90)
    close_run(lake.storage, lake.catalog, run, done or UnitReport(), finish)


def test_a_lake_without_reports_has_none(lake: Lake) -> None:
    assert list(newest_reports(lake)) == []


def test_they_come_newest_first_across_days_and_sources(lake: Lake) -> None:
    for source_id, start in [("S1", "01T10:00"), ("S2", "02T09:00"), ("S1", "02T08:00")]:
        report(lake, source_id, start)
    report(lake, "S2", "01T11:00")
    expected = ["S2@02T09:00", "S1@02T08:00", "S2@01T11:00", "S1@01T10:00"]
    assert [run.run_id for run in newest_reports(lake)] == expected
    assert [run.run_id for run in newest_reports(lake, {"S1"})] == ["S1@02T08:00", "S1@01T10:00"]


def test_a_report_knows_its_length_and_what_was_new(lake: Lake) -> None:
    columns = (NewColumn("a", "string"), NewColumn("b", "bigint"))
    tables = {
        "db.made": TableReport("made", "made", 0, new_columns=columns, is_new=True),
        "db.grown": TableReport("grown", "grown", 0, new_columns=columns),
        "db.same": TableReport("same", "same", 0),
    }
    report(lake, "S1", "01T10:00", UnitReport(tables))
    [run] = newest_reports(lake)
    assert run.seconds == 90
    assert run.started == datetime(2026, 10, 1, 10, 0, 0, 250_000, UTC)
    assert run.new_tables == ["made"]
    assert run.new_columns == ["grown.a", "grown.b"]


@pytest.mark.parametrize("damaged", [b"[]\n", b'{"type": "event"}\n', b'{"type": "source"}\n'])
def test_a_damaged_report_is_named_but_only_by_who_reads_it(lake: Lake, damaged: bytes) -> None:
    report(lake, "S1", "01T10:00")
    report(lake, "S1", "02T10:00")
    path = paths.report("S1", "2026-10-01", "S1@01T10:00")
    lake.storage.write(path, damaged)
    found = newest_reports(lake)
    assert next(found).run_id == "S1@02T10:00"
    with pytest.raises(StateError, match=r"run_id=S1@01T10:00/report\.json is not a sync report"):
        next(found)
