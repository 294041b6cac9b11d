"""`datalake reports`."""

from datetime import UTC, datetime

from eventlake.rules.counts import UnitReport
from eventlake.runs.open_runs import close_run
from eventlake.state.report import Failure, RunFacts
from tests.support.lakes.sample_lake import SampleLake
from tests.support.terminal import Terminal


def fail_a_run(sample: SampleLake) -> None:
    now = datetime.now(UTC)
    run = RunFacts("W1", "9IP56Shn6", "ios_prod", "R-failed", now, "")
    traced = "PythonException: worker\nTraceback (most recent call last):\n  File x\nOSError: full"
    failure = Failure("Segment.Internal", traced)
    close_run(sample.lake.storage, sample.lake.catalog, run, UnitReport(), now, failure)


def test_before_the_first_run_there_are_none(terminal: Terminal, unsynced: SampleLake) -> None:
    said = terminal.run("reports")
    assert (said.code, said.out) == (0, "")
    assert "No reports yet" in said.err
    assert terminal.run("reports", "--json").json == []


def test_the_newest_comes_first(terminal: Terminal, filled: SampleLake) -> None:
    found = terminal.run("reports", "--json").json
    assert [(r["database"], r["dagster_run_id"]) for r in found] == [
        ("ios_prod", "dagster-2"),
        ("web_shop", "dagster-2"),
        ("ios_prod", "dagster-1"),
        ("web_shop", "dagster-1"),
    ]
    assert {r["type"] for r in found} == {"source"}
    assert [r["run_id"] for r in found] == sorted((r["run_id"] for r in found), reverse=True)


def test_the_table_shows_what_each_run_did(terminal: Terminal, filled: SampleLake) -> None:
    first = filled.account.per_sync("9IP56Shn6")[0]
    row = terminal.run("reports", "--source", "ios_prod").rows[-1]
    assert row[1:8] == [
        "ios_prod",
        "sync",
        "finished",
        f"{len(first.tables)} tables",
        str(first.totals.row_count),
        str(first.totals.duplicates),
        str(first.totals.rejected),
    ]


def test_of_one_source_and_no_more_than_asked_for(terminal: Terminal, filled: SampleLake) -> None:
    words = ("reports", "--source", "web_shop", "--limit", "1", "--json")
    assert [(r["database"], r["dagster_run_id"]) for r in terminal.run(*words).json] == [
        ("web_shop", "dagster-2")
    ]


def test_failed_ones_alone_each_with_its_error_in_a_line(
    terminal: Terminal, filled: SampleLake
) -> None:
    assert "No run has failed" in terminal.run("reports", "--failed").err
    fail_a_run(filled)
    said = terminal.run("reports", "--failed")
    assert [row[-1] for row in said.rows] == ["R-failed"]
    assert said.err == "error: run R-failed: OSError: full\n"


def test_the_tables_of_one_run_by_either_id(terminal: Terminal, filled: SampleLake) -> None:
    newest = terminal.run("reports", "--json").json[0]
    expected = filled.account.per_sync("9IP56Shn6")[1].tables
    said = terminal.run("reports", "--run", newest["run_id"])
    assert {row[0] for row in said.rows} == set(expected)
    lines = terminal.run("reports", "--run", "dagster-2", "--json").json
    assert [line["type"] for line in lines[:2]] == ["source", "event"]
    assert {line["table_name"]: line["row_count"] for line in lines[1:]} == {
        table: totals.row_count for table, totals in expected.items()
    }


def test_a_failed_run_is_shown_with_all_of_its_error(
    terminal: Terminal, filled: SampleLake
) -> None:
    fail_a_run(filled)
    said = terminal.run("reports", "--run", "R-failed")
    assert "ios_prod: failed" in said.out
    assert "Segment.Internal: PythonException: worker\nTraceback" in said.err


def test_an_unknown_run_is_wrong_use(terminal: Terminal, filled: SampleLake) -> None:
    said = terminal.run("reports", "--run", "17")
    assert said.code == 2
    assert "No report has the run id '17'" in said.err
