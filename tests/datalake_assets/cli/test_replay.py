"""`datalake replay`, and `--dry-run` of replays and syncs: through Dagster, without Spark."""

import shutil
from pathlib import Path

import dagster as dg
import pytest

from eventlake.checks.view import TABLE_RULES
from eventlake.runs.failures import REFUSED
from eventlake.runs.verify import CHECKS
from tests.support.lakes.archive import Archive, track
from tests.support.lakes.jobs import SampleLake
from tests.support.terminal import Result, datalake, everything_below

pytestmark = pytest.mark.usefixtures("in_process")
IOS = "9IP56Shn6"
FIRST_DAY = ("--from", "2026-10-01", "--to", "2026-10-02")
DAY = ("--source", "ios_prod", *FIRST_DAY)


def rows_by_hour(table: str) -> list[dict[str, object]]:
    query = f"SELECT day, hr, count(*) n FROM {table} GROUP BY ALL ORDER BY ALL"
    answer: list[dict[str, object]] = datalake("sql", query, "--json").json
    return answer


def test_a_replayed_day_has_the_same_rows(filled: SampleLake) -> None:
    before = rows_by_hour("ios_prod.screen")
    [report] = datalake("replay", *DAY, "--json").json
    assert (report["status"], report["replay"]) == ("finished", True)
    assert report["replay_from"] == "2026-10-01 00:00:00.000"
    assert report["replay_to"] == "2026-10-02 00:00:00.000"
    rows = filled.generated.expected(IOS).rows
    assert report["row_count"] == sum(n for slot, n in rows.items() if slot.day == "2026-10-01")
    assert rows_by_hour("ios_prod.screen") == before


def test_a_replay_evaluates_all_checks_of_its_tables_in_one_step(filled: SampleLake) -> None:
    result = datalake("replay", *DAY, "--table", "screen")
    assert "not checked" not in result.err
    with dg.DagsterInstance.local_temp(str(filled.folder / ".dagster")) as instance:
        [run] = instance.get_runs(limit=1)
        steps = instance.get_run_step_stats(run.run_id)
        events = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    assert [step.step_key for step in steps] == ["replay_ios_prod_tables"]
    # Without an origin, Dagster's home page leaves the run out.
    assert run.remote_job_origin is not None
    assert run.remote_job_origin.location_name == "datalake"
    assert run.remote_job_origin.job_name == "replay_ios_prod"
    checks = [e.dagster_event.asset_check_evaluation_data for e in events if e.dagster_event]
    of_table = [one for one in checks if one.asset_key.path[-1] == "screen"]
    assert {one.check_name for one in of_table} == {*CHECKS, *TABLE_RULES}
    assert all(one.passed for one in of_table)


def test_a_replay_of_some_tables_and_hours(filled: SampleLake) -> None:
    hour = ("--from", "2026-10-01T01", "--to", "2026-10-01T02")
    words = ("--table", "screen", "--table", "identify")
    datalake("replay", "--source", "ios_prod", *hour, *words)
    run = datalake("reports", "--json").json[0]["run_id"]
    _, *tables = datalake("reports", "--run", run, "--json").json
    assert {table["table_name"] for table in tables} == {"screen", "identify"}
    assert {p["hr"] for table in tables for p in table["partitions"]} == {"01"}


def test_a_replay_fills_a_new_database(filled: SampleLake) -> None:
    settings = filled.folder / "lake.yaml"
    settings.write_text(f"{settings.read_text()}    database: second\n")
    result = datalake("replay", *DAY, "--json")
    assert result.json[0]["row_count"] > 0
    query = "SELECT (SELECT count(*) FROM second.screen) n, count(*) m FROM ios_prod.screen"
    [rows] = datalake("sql", f"{query} WHERE day = '2026-10-01'", "--json").json
    assert rows["n"] == rows["m"] > 0


def test_a_replay_before_the_first_sync(unsynced: SampleLake) -> None:
    [report] = datalake("replay", *DAY, "--json").json
    assert (report["status"], report["row_count"] > 0) == ("finished", True)
    early = ("--from", "2026-09-01", "--to", "2026-10-02")
    result = datalake("replay", "--source", "ios_prod", *early, code=2)
    assert "the first day of source" in result.err


def test_raw_files_that_changed_need_consent(filled: SampleLake) -> None:
    gone = filled.generated.files[IOS][0]
    (filled.folder / "data" / gone.path).unlink()
    before = everything_below(filled.folder / "data")
    words = ("replay", *DAY, "--table", "screen")
    result = datalake(*words, code=2)
    assert f"removed: {gone.path}" in result.err
    assert "--accept-changes" in result.err
    after = everything_below(filled.folder / "data")
    assert before.items() <= after.items()
    new = [path for path in after.keys() - before.keys() if "/_state/" not in path]
    assert {path.split("/")[-1] for path in new} == {"report.json", "metadata.json"}
    assert f"{REFUSED}Raw files that rows of" in datalake("reports", "--failed").err
    assert "No problem is open." in datalake("alerts").out
    datalake(*words, "--accept-changes")


COUNTS = ("row_count", "rows_in", "duplicates", "rejected", "suppressed", "skipped", "raw_files")


def dry(*words: str, code: int = 0) -> Result:
    """A dry run that leaves every byte below the folder as it was, Dagster's too."""
    before = everything_below(Path.cwd())
    result = datalake(*words, "--dry-run", code=code)
    assert everything_below(Path.cwd()) == before
    return result


def test_a_dry_sync_counts_what_it_would_load(unsynced: SampleLake) -> None:
    [web, ios] = dry("sync", "--json").json
    [report] = datalake("sync", "--source", "ios_prod", "--json").json
    assert (web["source"], ios["source"]) == ("web_shop", "ios_prod")
    assert {name: ios[name] for name in COUNTS} == {name: report[name] for name in COUNTS}
    rows = datalake("sql", "SELECT day, hr, count(*) n FROM ios_prod.screen GROUP BY ALL", "--json")
    [screen] = [table for table in ios["tables"] if table["table"] == "ios_prod.screen"]
    assert {(p["day"], p["hr"]): p["rows_then"] for p in screen["partitions"]} == {
        (row["day"], row["hr"]): row["n"] for row in rows.json
    }
    assert screen["is_new"] and screen["rows_now"] == 0


def test_a_dry_sync_with_nothing_new_reports_no_change(filled: SampleLake) -> None:
    result = dry("sync", "--source", "ios_prod")
    assert result.out == "ios_prod: a sync would change nothing; there is nothing to load.\n"
    assert "Nothing was changed (--dry-run)." in result.err


def test_a_dry_sync_shows_new_tables_and_columns(filled: SampleLake) -> None:
    raw = Archive(filled.folder / "data/segment-logs" / IOS)
    raw.day("2026-10-02").file(
        "late",
        track("Brand New", "n1", "2026-10-02T01:00", a=1),
        track("Application Opened", "n2", "2026-10-02T01:00", fresh=True),
        track("Application Opened", "n2", "2026-10-02T01:00", fresh=True),
        "no JSON",
    )
    result = dry("sync", "--source", "ios_prod")
    lines = result.out.splitlines()
    assert lines[0] == (
        "ios_prod: a sync would read 4 rows from 1 raw file and load 2 rows into 2 tables "
        "(1 duplicate, 1 rejected)."
    )
    assert any("ios_prod.track_brand_new new, 17 columns" in line for line in lines)
    assert any(
        line.split()[:2] == ["ios_prod.track_application_opened", "properties_fresh"]
        for line in lines
    )


def test_a_dry_replay_counts_what_the_range_would_hold(filled: SampleLake) -> None:
    words = ("replay", *DAY, "--table", "screen", "--table", "identify")
    [same] = dry(*words, "--json").json
    assert same["replay"] and same["replay_from"] == "2026-10-01T00:00:00Z"
    assert all(table["rows_now"] == table["rows_then"] for table in same["tables"])
    gone = filled.generated.files[IOS][0]
    (filled.folder / "data" / gone.path).unlink()
    [less] = dry(*words, "--json").json
    assert less["row_count"] < same["row_count"]
    assert any(f"removed: {gone.path}" in warning for warning in less["warnings"])
    [report] = datalake(*words, "--accept-changes", "--json").json
    assert {name: less[name] for name in COUNTS} == {name: report[name] for name in COUNTS}


def test_a_replay_of_a_table_that_is_skipped_by_now_would_drop_it(filled: SampleLake) -> None:
    settings = filled.folder / "lake.yaml"
    settings.write_text(settings.read_text() + "    skip_events: [screen]\n")
    result = dry("replay", *DAY)
    [total] = [line for line in result.out.splitlines() if line.startswith("ios_prod.screen ")][:1]
    assert total.split()[2] == "0"
    assert "dropped" in result.out and "skipped" in result.out.splitlines()[0]
    datalake("replay", *DAY)
    result = dry("replay", *DAY, "--table", "screen", code=2)
    assert "is skipped" in result.err


def test_dagster_does_not_record_it(unsynced: SampleLake) -> None:
    dry("sync")
    assert sorted(path.name for path in unsynced.folder.iterdir()) == ["data", "lake.yaml"]
    assert datalake("status", "--json").json[0]["last_sync"] is None


def test_a_missing_archive_is_refused_as_by_a_sync(filled: SampleLake) -> None:
    shutil.rmtree(filled.folder / "data/segment-logs" / IOS)
    dry("sync", "--source", "ios_prod", code=2)
