"""The commands `records` and `find`."""

import csv
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.lakes.jobs import SampleLake
from tests.support.terminal import datalake


def newest(source: str = "ios_prod") -> str:
    runs = datalake("records", "--json").json
    return str(next(run["run_id"] for run in runs if run["source"] == source))


def record(status: str) -> dict[str, Any]:
    """One record of the newest run of ios_prod."""
    words = ("records", "--source", "ios_prod", "--status", status, "--sample", "1", "--json")
    (found,) = datalake(*words).json
    return dict(found)


def test_before_the_first_run_there_are_none(unsynced: SampleLake) -> None:
    result = datalake("records")
    assert result.out == ""
    assert "No record logs yet" in result.err
    assert datalake("records", "--json").json == []
    result = datalake("records", "--source", "ios_prod", code=2)
    assert "`datalake sync` creates one" in result.err


def test_the_runs_that_have_a_log_newest_first(filled: SampleLake) -> None:
    runs = datalake("records", "--json").json
    assert [run["source"] for run in runs] == ["ios_prod", "web_shop", "ios_prod", "web_shop"]
    totals = filled.generated.per_sync("9IP56Shn6")[1].totals
    assert runs[0]["records"]["records_loaded"] == totals.row_count
    assert runs[0]["records"]["records_duplicate"] == totals.duplicates
    assert sum(runs[0]["records"].values()) == totals.rows_in
    assert [row[-1] for row in datalake("records", "--limit", "3").rows] == [
        run["run_id"] for run in runs[:3]
    ]


def test_the_records_of_a_run_by_status(filled: SampleLake) -> None:
    totals = filled.generated.per_sync("9IP56Shn6")[1].totals
    words = ("records", "--run", newest())
    everything = datalake(*words, "--json").json
    assert len(everything) == totals.rows_in
    assert Counter(r["status"] for r in everything)["DUPLICATE"] == totals.duplicates
    chosen = datalake(*words, "--status", "rejected", "--status", "null", "--json").json
    assert {r["status"] for r in chosen} == {"rejected", "NULL"}
    assert len(chosen) == totals.rejected
    assert all(r["record_payload"] for r in chosen if "broken here" not in r["status_message"])


def test_a_table_shows_the_first_records_and_how_many_more_there_are(filled: SampleLake) -> None:
    result = datalake("records", "--source", "ios_prod", "--status", "succeeded", "--limit", "2")
    totals = filled.generated.per_sync("9IP56Shn6")[1].totals
    assert result.out.startswith(f"Sync {newest()} of ios_prod, ")
    assert f"finished: {totals.rows_in} records ({totals.row_count} succeeded, " in result.out
    assert [row[0] for row in result.rows] == ["succeeded"] * 2
    assert f"and {totals.row_count - 2} more" in result.err


def test_a_run_opens_with_what_was_not_loaded_by_reason(filled: SampleLake) -> None:
    shown = datalake("records", "--run", newest(), "--limit", "3").out
    reasons, listed = (part.splitlines() for part in shown.split("─\n")[1:])
    statuses = [one for s in ("rejected", "NULL", "DUPLICATE") for one in ("--status", s)]
    found = datalake("records", "--run", newest(), *statuses, "--json").json
    counts = [int(line.split()[-1]) for line in reasons[:-2]]
    assert (sum(counts), counts) == (len(found), sorted(counts, reverse=True))
    assert any("`messageId` is missing or empty  " in line for line in reasons)
    assert [line.split()[0] for line in listed] == ["rejected"] * 3


def test_one_record_with_its_payload_from_the_archive(filled: SampleLake) -> None:
    run = newest()
    loaded = record("succeeded")
    assert loaded["record_payload"] is None
    words = ("records", "--run", run, "--id", loaded["identifier"])
    (shown, *others) = datalake(*words, "--json").json
    assert json.loads(shown["record_payload"])["messageId"] == loaded["identifier"]
    assert {other["status"] for other in others} <= {"DUPLICATE"}
    result = datalake(*words)
    assert result.out.splitlines()[0] == loaded["identifier"]
    assert f"  raw_file          {loaded['raw_file']}" in result.out
    assert f'"messageId":"{loaded["identifier"]}"' in result.out
    result = datalake("records", "--run", run, "--id", "nobody", "--json")
    assert result.json == []
    assert "`datalake find` searches all runs" in result.err


@pytest.mark.parametrize("name", ["sample.csv", "sample.jsonl", "sample.parquet"])
def test_a_sample_as_a_file(filled: SampleLake, tmp_path: Path, name: str) -> None:
    words = ("records", "--source", "web_shop", "--sample", "10", "--out", name)
    contents = []
    for _ in range(2):
        result = datalake(*words)
        assert result.out == ""
        assert "Wrote 10 records of run" in result.err
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]


def test_all_records_of_a_status_as_a_file(filled: SampleLake) -> None:
    datalake("records", "--run", newest(), "--status", "duplicate", "--out", "d.csv")
    rows = list(csv.DictReader(Path("d.csv").read_text().splitlines()))
    assert len(rows) == filled.generated.per_sync("9IP56Shn6")[1].totals.duplicates
    assert {row["status"] for row in rows} == {"DUPLICATE"}


def test_a_loaded_event_from_its_line_to_its_file(filled: SampleLake) -> None:
    loaded = record("succeeded")
    result = datalake("find", loaded["identifier"])
    assert f"{loaded['identifier']} of ios_prod: 1 row in the lake" in result.out
    assert f"  raw    {loaded['raw_file']} line {loaded['raw_line']}\n" in result.out
    assert f"  table  {loaded['table_name']}, {loaded['partition']}\n" in result.out
    assert f"  file   {loaded['data_file']}\n  now    in the lake\n" in result.out
    assert result.err == ""


def test_a_duplicate_with_the_one_that_was_kept(filled: SampleLake) -> None:
    duplicate = record("duplicate")
    found = datalake("find", duplicate["identifier"], "--json").json
    assert (found["message_id"], found["found"]) == (duplicate["identifier"], True)
    (ios,) = (one for one in found["sources"] if one["source"] == "ios_prod")
    assert len(ios["in_lake"]) == 1
    assert sorted(o["status"] for o in ios["occurrences"])[0] == "DUPLICATE"
    (kept,) = (o for o in ios["occurrences"] if o["status"] == "succeeded")
    assert kept["now_in"] == ios["in_lake"][0]["data_file"]
    assert all("record_payload" not in o for o in ios["occurrences"])
    result = datalake("find", duplicate["identifier"], "--source", "ios_prod")
    assert "  why    An event with the same messageId" in result.out


def test_a_rejected_event_with_the_reason(filled: SampleLake) -> None:
    rejected = record("records_rejected")
    result = datalake("find", rejected["identifier"])
    assert "ios_prod: not in the lake" in result.out
    assert f"  why    {rejected['status_message']}" in result.out


def test_missing_logs_are_reported_and_events_still_found(filled: SampleLake) -> None:
    loaded = record("succeeded")
    shutil.rmtree(filled.folder / "data" / "sync_tracking_datasets")
    result = datalake("find", loaded["identifier"])
    assert loaded["data_file"] in result.out
    assert "No record log has it (there is none), so its raw file is unknown" in result.err
    run = loaded["data_file"].rsplit("/", 1)[1].split("-")[0]
    assert f"written by run {run}" in result.err


def test_an_unknown_id_exits_with_1_and_shows_what_was_searched(filled: SampleLake) -> None:
    result = datalake("find", "nobody", code=1)
    assert result.out == ""
    assert "No event has the id 'nobody'. Searched:" in result.err
    assert "ios_prod: record logs (2 logs, back to " in result.err
    assert "no raw files wait to be synced" in result.err
    result = datalake("find", "nobody", "--source", "web_shop", "--json", code=1)
    assert result.json["found"] is False
    assert [one["source"] for one in result.json["sources"]] == ["web_shop"]


def test_before_the_first_sync_waiting_files_may_have_it(unsynced: SampleLake) -> None:
    result = datalake("find", "nobody", code=1)
    assert "ios_prod: record logs (there is none), id index and tables (0 days: none)" in result.err
    assert "raw files not synced yet, which may contain it" in result.err
