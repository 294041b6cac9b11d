"""`datalake find`."""

import shutil

from tests.support.lakes.sample_lake import SampleLake
from tests.support.terminal import Terminal


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
