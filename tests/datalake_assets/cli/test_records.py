"""`datalake records`."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.lakes.sample_lake import SampleLake
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
