"""`--dry-run` of `sync` and `replay`: the numbers of the run, and not a byte is changed."""

import json
import shutil
from pathlib import Path

import pytest

from eventlake.sample import write_archive
from tests.support.lakes.archive import Archive, track
from tests.support.lakes.jobs import SAMPLE, SampleLake
from tests.support.terminal import Said, Terminal, everything_below

pytestmark = pytest.mark.usefixtures("in_process")
IOS = "9IP56Shn6"
DAY = ("--source", "ios_prod", "--from", "2026-10-01", "--to", "2026-10-02")
COUNTS = ("row_count", "rows_in", "duplicates", "rejected", "suppressed", "skipped", "raw_files")


def dry(terminal: Terminal, *words: str) -> Said:
    """A dry run that leaves every byte below the folder as it was, Dagster's too."""
    before = everything_below(Path.cwd())
    said = terminal.run(*words, "--dry-run")
    assert everything_below(Path.cwd()) == before
    return said


def test_a_sync_says_what_it_would_load(terminal: Terminal, unsynced: SampleLake) -> None:
    [web, ios] = dry(terminal, "sync", "--json").json
    [report] = terminal.run("sync", "--source", "ios_prod", "--json").json
    assert (web["source"], ios["source"]) == ("web_shop", "ios_prod")
    assert {name: ios[name] for name in COUNTS} == {name: report[name] for name in COUNTS}
    rows = terminal.run(
        "sql", "SELECT day, hr, count(*) n FROM ios_prod.screen GROUP BY ALL", "--json"
    )
    [screen] = [table for table in ios["tables"] if table["table"] == "ios_prod.screen"]
    assert {(p["day"], p["hr"]): p["rows_then"] for p in screen["partitions"]} == {
        (row["day"], row["hr"]): row["n"] for row in rows.json
    }
    assert screen["is_new"] and screen["rows_now"] == 0


def test_a_sync_with_nothing_new_says_so(terminal: Terminal, filled: SampleLake) -> None:
    said = dry(terminal, "sync", "--source", "ios_prod")
    assert said.code == 0
    assert said.out == "ios_prod: a sync would change nothing; there is nothing to load.\n"
    assert "Nothing was changed (--dry-run)." in said.err


def test_what_a_sync_would_add_is_drawn(terminal: Terminal, filled: SampleLake) -> None:
    raw = Archive(filled.folder / "data/segment-logs" / IOS)
    raw.day("2026-10-02").file(
        "late",
        track("Brand New", "n1", "2026-10-02T01:00", a=1),
        track("Application Opened", "n2", "2026-10-02T01:00", fresh=True),
        track("Application Opened", "n2", "2026-10-02T01:00", fresh=True),
        "no JSON",
    )
    said = dry(terminal, "sync", "--source", "ios_prod")
    lines = said.out.splitlines()
    assert lines[0] == (
        "ios_prod: a sync would read 4 rows from 1 raw file and load 2 rows into 2 tables "
        "(1 duplicates, 1 rejected)."
    )
    assert any("ios_prod.track_brand_new new, 17 columns" in line for line in lines)
    assert any(
        line.split()[:2] == ["ios_prod.track_application_opened", "properties_fresh"]
        for line in lines
    )


def test_a_replay_says_what_the_range_would_hold(terminal: Terminal, filled: SampleLake) -> None:
    words = ("replay", *DAY, "--table", "screen", "--table", "identify")
    [same] = dry(terminal, *words, "--json").json
    assert same["replay"] and same["replay_from"] == "2026-10-01T00:00:00Z"
    assert all(table["rows_now"] == table["rows_then"] for table in same["tables"])
    gone = filled.account.files[IOS][0]
    (filled.folder / "data" / gone.path).unlink()
    [less] = dry(terminal, *words, "--json").json
    assert less["row_count"] < same["row_count"]
    assert any(f"removed: {gone.path}" in warning for warning in less["warnings"])
    [report] = terminal.run(*words, "--accept-changes", "--json").json
    assert {name: less[name] for name in COUNTS} == {name: report[name] for name in COUNTS}


def test_a_replay_of_a_table_that_is_skipped_by_now_would_drop_it(
    terminal: Terminal, filled: SampleLake
) -> None:
    settings = filled.folder / "lake.yaml"
    settings.write_text(settings.read_text() + "    skip_events: [screen]\n")
    said = dry(terminal, "replay", *DAY)
    assert said.code == 0
    [total] = [line for line in said.out.splitlines() if line.startswith("ios_prod.screen ")][:1]
    assert total.split()[2] == "0"
    assert "dropped" in said.out and "skipped" in said.out.splitlines()[0]
    assert terminal.run("replay", *DAY).code == 0
    said = dry(terminal, "replay", *DAY, "--table", "screen")
    assert (said.code, "is skipped" in said.err) == (2, True)


def test_dagster_hears_nothing_of_it(terminal: Terminal, unsynced: SampleLake) -> None:
    dry(terminal, "sync")
    assert sorted(path.name for path in unsynced.folder.iterdir()) == ["data", "lake.yaml"]
    assert json.loads(terminal.run("status", "--json").out)[0]["last_sync"] is None


def test_wrong_words_are_refused_as_without_it(terminal: Terminal, filled: SampleLake) -> None:
    words = ("--from", "2026-09-28", "--to", "2026-10-02")
    assert dry(terminal, "replay", "--source", "ios_prod", *words).code == 2
    assert dry(terminal, "replay", *DAY, "--table", "scren").code == 2
    shutil.rmtree(filled.folder / "data/segment-logs" / IOS)
    assert dry(terminal, "sync", "--source", "ios_prod").code == 2
    write_archive(filled.folder / "data", SAMPLE)
