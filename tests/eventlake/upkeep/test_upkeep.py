"""The whole upkeep of a source: what it does, what it tells, and what it leaves alone."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from eventlake.lake import Lake
from eventlake.rules import clock, paths
from eventlake.rules.clock import now
from eventlake.runs.open_runs import OpenRun
from eventlake.state.lease import Holder
from eventlake.state.manifest import RunKind
from eventlake.status import source_status
from eventlake.storage.documents import encode
from eventlake.upkeep import upkeep
from eventlake.upkeep import upkeep as upkeep_report
from eventlake.upkeep.upkeep import UpkeepFailed, newest_upkeeps, planned_upkeep
from tests.support.faults.cases import scattered
from tests.support.lakes.archive import order
from tests.support.lakes.runs import SOURCE_ID, Runs, utc
from tests.support.oracles.invariants import check_invariants, check_sweep


def listed(runs: Runs) -> dict[str, str]:
    return {file.path: file.stamp for file in runs.storage.files("")}


def test_all_due_work_is_reported(anywhere: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = anywhere
    scattered(runs)
    monkeypatch.setattr(clock, "read", lambda: utc("2026-12-24"))
    runs.storage.write(f"{paths.versions(SOURCE_ID)}/R9/segment_type=x/R9-0-0.parquet", b"left")
    report = runs.upkeep("2026-12-24")
    done = report.compacted
    assert (done.partitions, done.files_before, done.files_after) == (3, 9, 3)
    assert report.index_days == ("2026-10-01", "2026-10-02")
    assert report.removed["record log"].files == 9  # of three runs, each with its description
    assert (report.before["record log"].files, report.after["record log"].files) == (9, 0)
    # What was replaced stays for a while: 9 files were there, 3 came.
    assert (report.before["data"].files, report.after["data"].files) == (10, 13)
    assert (report.orphans.files, report.orphans.bytes) == (1, 4)
    assert report.warnings == ()
    check_invariants(runs)
    monkeypatch.setattr(clock, "read", lambda: utc("2027-01-01"))
    second = runs.upkeep("2027-01-01")
    assert second.removed["orphans"].files == 1
    # What was compacted came home in place of what it replaced, and can still be read where it was.
    assert (second.came_home.files, second.after["data"].files) == (3, 6)
    assert second.compacted.partitions == 0
    monkeypatch.setattr(clock, "read", lambda: utc("2027-01-03"))
    third = runs.upkeep("2027-01-03")
    assert (third.removed["replaced"].files, third.after["data"].files) == (3, 3)
    assert [*newest_upkeeps(runs.storage, SOURCE_ID)] == [third, second, report]
    check_sweep(runs)


def test_its_messages_and_warnings_reach_the_user(runs: Runs) -> None:
    scattered(runs)
    facts = replace(runs.context().facts, run_id="R0")
    expired = Holder("another-machine", 1, now() - timedelta(minutes=5))
    runs.storage.write(paths.open_run(SOURCE_ID, "R0"), encode(OpenRun(facts, 0, expired)))
    runs.logged.clear()
    report = runs.upkeep("2026-12-24")
    assert runs.logged == ["Compacted 3 partitions: 9 files are 3"]
    [warning] = runs.warnings
    assert "Run R0 had died without a report" in warning
    assert report.warnings == (warning,)


def test_a_dry_run_reports_the_same_and_changes_nothing(runs: Runs) -> None:
    scattered(runs)
    before = listed(runs)
    planned = planned_upkeep(runs.context(RunKind.UPKEEP), utc("2026-12-24"))
    assert listed(runs) == before
    done = runs.upkeep("2026-12-24")
    assert planned.compacted.files_after == done.compacted.files_after == 3
    assert planned.index_days == done.index_days
    assert planned.removed["record log"] == done.removed["record log"]
    assert planned.dry_run and not done.dry_run


def test_a_failed_part_is_isolated(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    scattered(runs)

    def fail(*args: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(upkeep, "compact", fail)
    with pytest.raises(UpkeepFailed, match="Compaction broke off: the disk is full") as broken:
        runs.upkeep("2026-12-24")
    assert broken.value.report.removed["record log"].files == 9
    [kept] = newest_upkeeps(runs.storage, SOURCE_ID)
    assert kept.warnings == ("Compaction broke off: the disk is full",)
    check_invariants(runs)


def test_a_lake_without_any_run_has_nothing_to_keep_up(runs: Runs) -> None:
    report = runs.upkeep()
    assert report.compacted.partitions == 0 and report.index_days == ()
    assert {amount.files for amount in report.after.values()} == {0}


def test_status_shows_it_and_reports_do_not(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    scattered(runs)
    seen: list[str] = []

    def look(*args: Any) -> list[Any]:
        status = source_status(Lake(runs.settings, runs.storage, runs.catalog), runs.source, now())
        seen.extend(run.kind for run in status.open_runs)
        return []

    monkeypatch.setattr(upkeep, "compact", look)
    runs.upkeep()
    assert seen == ["upkeep"]
    assert sorted(runs.reports()) == ["R1", "R2", "R3"]


def test_only_the_newest_reports_are_kept(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep_report, "KEPT", 2)
    for _ in range(4):
        runs.upkeep()
    assert [report.run_id for report in newest_upkeeps(runs.storage, SOURCE_ID)] == ["R4", "R3"]


def test_pipes_of_clusters_go_after_the_days_of_staging(runs: Runs) -> None:
    runs.archive.day("2026-10-01").file("a", order("m1", "2026-10-01T07:00"))
    runs.storage.write(f"{paths.pipes('R5')}/1.json", b"{}")
    assert runs.upkeep("2026-10-20").removed["staging"].files == 0
    assert runs.upkeep("2036-10-20").removed["staging"].files == 1
