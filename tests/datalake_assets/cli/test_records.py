"""The commands `records` and `find`."""

import csv
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.lakes.jobs import SampleLake
from tests.support.terminal import Terminal


def newest(terminal: Terminal, source: str = "ios_prod") -> str:
    runs = terminal.run("records", "--json").json
    return str(next(run["run_id"] for run in runs if run["source"] == source))


def test_before_the_first_run_there_are_none(terminal: Terminal, unsynced: SampleLake) -> None:
    said = terminal.run("records")
    assert (said.code, said.out) == (0, "")
    assert "No record logs yet" in said.err
    assert terminal.run("records", "--json").json == []
    said = terminal.run("records", "--source", "ios_prod")
    assert said.code == 2
    assert "`datalake sync` makes one" in said.err


def test_the_runs_that_have_a_log_newest_first(terminal: Terminal, filled: SampleLake) -> None:
    runs = terminal.run("records", "--json").json
    assert [run["source"] for run in runs] == ["ios_prod", "web_shop", "ios_prod", "web_shop"]
    totals = filled.account.per_sync("9IP56Shn6")[1].totals
    assert runs[0]["records"]["records_loaded"] == totals.row_count
    assert runs[0]["records"]["records_duplicate"] == totals.duplicates
    assert sum(runs[0]["records"].values()) == totals.rows_in
    assert [row[-1] for row in terminal.run("records", "--limit", "3").rows] == [
        run["run_id"] for run in runs[:3]
    ]


def test_the_records_of_a_run_by_status(terminal: Terminal, filled: SampleLake) -> None:
    totals = filled.account.per_sync("9IP56Shn6")[1].totals
    words = ("records", "--run", newest(terminal))
    everything = terminal.run(*words, "--json").json
    assert len(everything) == totals.rows_in
    assert Counter(r["status"] for r in everything)["DUPLICATE"] == totals.duplicates
    chosen = terminal.run(*words, "--status", "rejected", "--status", "null", "--json").json
    assert {r["status"] for r in chosen} == {"rejected", "NULL"}
    assert len(chosen) == totals.rejected
    assert all(r["record_payload"] for r in chosen if "broken here" not in r["status_message"])


def test_a_person_sees_the_first_ones_and_how_many_there_are(
    terminal: Terminal, filled: SampleLake
) -> None:
    said = terminal.run("records", "--source", "ios_prod", "--status", "succeeded", "--limit", "2")
    totals = filled.account.per_sync("9IP56Shn6")[1].totals
    assert said.out.startswith(f"Sync {newest(terminal)} of ios_prod, ")
    assert f"finished: {totals.rows_in} records ({totals.row_count} loaded, " in said.out
    assert [row[0] for row in said.rows] == ["succeeded"] * 2
    assert f"and {totals.row_count - 2} more" in said.err


def test_one_record_with_its_payload_from_the_archive(
    terminal: Terminal, filled: SampleLake
) -> None:
    run = newest(terminal)
    (loaded,) = terminal.run(
        "records", "--run", run, "--status", "succeeded", "--sample", "1", "--json"
    ).json
    assert loaded["record_payload"] is None
    words = ("records", "--run", run, "--id", loaded["identifier"])
    (shown, *others) = terminal.run(*words, "--json").json
    assert json.loads(shown["record_payload"])["messageId"] == loaded["identifier"]
    assert {other["status"] for other in others} <= {"DUPLICATE"}
    said = terminal.run(*words)
    assert said.out.splitlines()[0] == loaded["identifier"]
    assert f"  raw_file          {loaded['raw_file']}" in said.out
    assert f'"messageId":"{loaded["identifier"]}"' in said.out


def test_an_identifier_that_the_run_does_not_have(terminal: Terminal, filled: SampleLake) -> None:
    said = terminal.run("records", "--run", newest(terminal), "--id", "nobody", "--json")
    assert (said.code, said.json) == (0, [])
    assert "`datalake find` looks in all runs" in said.err


@pytest.mark.parametrize("name", ["sample.csv", "sample.jsonl", "sample.parquet"])
def test_a_sample_as_a_file(
    terminal: Terminal, filled: SampleLake, tmp_path: Path, name: str
) -> None:
    words = ("records", "--source", "web_shop", "--sample", "10", "--out", name)
    contents = []
    for _ in range(2):
        said = terminal.run(*words)
        assert (said.code, said.out) == (0, "")
        assert "Wrote 10 records of run" in said.err
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]


def test_all_records_of_a_status_as_a_file(
    terminal: Terminal, filled: SampleLake, tmp_path: Path
) -> None:
    terminal.run("records", "--run", newest(terminal), "--status", "duplicate", "--out", "d.csv")
    with (tmp_path / "d.csv").open(newline="") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    assert len(rows) == filled.account.per_sync("9IP56Shn6")[1].totals.duplicates
    assert {row["status"] for row in rows} == {"DUPLICATE"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--run", "17"), "No run of web_shop or ios_prod has the id '17'"),
        (("--source", "nobody"), "Source 'nobody' is not in the settings"),
        (("--source", "web_shop", "--status", "lost"), "'lost' is no status"),
        (("--status", "rejected"), "Which run? Give --run, or --source"),
        (("--source", "web_shop", "--out", "r.txt"), "the ending says what to write"),
        (("--source", "web_shop", "--out", "no/r.csv"), "in a folder that exists"),
        (("--source", "web_shop", "--out", "r.csv", "--json"), "exclude each other"),
    ],
)
def test_wrong_use_says_what_would_be_right(
    terminal: Terminal, filled: SampleLake, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    said = terminal.run("records", *words)
    assert (said.code, said.out) == (2, "")
    assert message in said.err
    assert not list(tmp_path.glob("r.*"))


def record(terminal: Terminal, status: str) -> dict[str, str]:
    """The record of the newest run of ios_prod that stands in the middle of its kind."""
    words = ("records", "--source", "ios_prod", "--status", status, "--sample", "1", "--json")
    (found,) = terminal.run(*words).json
    return dict(found)


def test_a_loaded_event_from_its_line_to_its_file(terminal: Terminal, filled: SampleLake) -> None:
    loaded = record(terminal, "succeeded")
    said = terminal.run("find", loaded["identifier"])
    assert said.code == 0
    assert f"{loaded['identifier']} of ios_prod: 1 row in the lake" in said.out
    assert f"  raw    {loaded['raw_file']} line {loaded['raw_line']}\n" in said.out
    assert f"  table  {loaded['table_name']}, {loaded['partition']}\n" in said.out
    assert f"  file   {loaded['data_file']}\n  now    in the lake\n" in said.out
    assert said.err == ""


def test_a_duplicate_with_the_one_that_was_kept(terminal: Terminal, filled: SampleLake) -> None:
    duplicate = record(terminal, "duplicate")
    found = terminal.run("find", duplicate["identifier"], "--json").json
    assert (found["message_id"], found["found"]) == (duplicate["identifier"], True)
    (ios,) = (one for one in found["sources"] if one["source"] == "ios_prod")
    assert len(ios["in_lake"]) == 1
    assert sorted(o["status"] for o in ios["occurrences"])[0] == "DUPLICATE"
    (kept,) = (o for o in ios["occurrences"] if o["status"] == "succeeded")
    assert kept["now_in"] == ios["in_lake"][0]["data_file"]
    assert all("record_payload" not in o for o in ios["occurrences"])
    said = terminal.run("find", duplicate["identifier"], "--source", "ios_prod")
    assert "  why    An event with the same messageId" in said.out


def test_a_rejected_event_with_the_reason(terminal: Terminal, filled: SampleLake) -> None:
    rejected = record(terminal, "records_rejected")
    said = terminal.run("find", rejected["identifier"])
    assert said.code == 0
    assert "ios_prod: not in the lake" in said.out
    assert f"  why    {rejected['status_message']}" in said.out


def test_without_logs_it_says_so_and_still_finds(terminal: Terminal, filled: SampleLake) -> None:
    loaded = record(terminal, "succeeded")
    shutil.rmtree(filled.folder / "data" / "sync_tracking_datasets")
    said = terminal.run("find", loaded["identifier"])
    assert said.code == 0
    assert loaded["data_file"] in said.out
    assert "No record log tells of it (there is none): its raw file is not known" in said.err
    run = loaded["data_file"].rsplit("/", 1)[1].split("-")[0]
    assert f"run {run} wrote it" in said.err


def test_what_is_nowhere_ends_with_1_and_says_what_was_searched(
    terminal: Terminal, filled: SampleLake
) -> None:
    said = terminal.run("find", "nobody")
    assert (said.code, said.out) == (1, "")
    assert "No event has the id 'nobody'. Searched:" in said.err
    assert "ios_prod: record logs (2 logs, back to " in said.err
    assert "no raw files wait to be synced" in said.err
    said = terminal.run("find", "nobody", "--source", "web_shop", "--json")
    assert (said.code, said.json["found"]) == (1, False)
    assert [one["source"] for one in said.json["sources"]] == ["web_shop"]


def test_before_the_first_sync_it_may_be_in_what_waits(
    terminal: Terminal, unsynced: SampleLake
) -> None:
    said = terminal.run("find", "nobody")
    assert said.code == 1
    assert "ios_prod: record logs (there is none), id index and tables (0 days: none)" in said.err
    assert "raw files not synced yet, where it may be" in said.err


def test_an_unknown_source_is_wrong_use(terminal: Terminal, filled: SampleLake) -> None:
    assert terminal.run("find", "nobody", "--source", "x").code == 2
