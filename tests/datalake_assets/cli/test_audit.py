"""`datalake audit`."""

from pathlib import Path

import pytest

from tests.support.lakes.sample_lake import SampleLake
from tests.support.terminal import Terminal, everything_below

IOS = ("audit", "--source", "ios_prod")


def data_file(sample: SampleLake) -> Path:
    """A data file of ios_prod."""
    return min((sample.folder / "data/segment-data/data/9IP56Shn6").rglob("*.parquet"))


def test_all_agrees_and_nothing_is_changed(terminal: Terminal, filled: SampleLake) -> None:
    before = everything_below(filled.folder)
    said = terminal.run(*IOS)
    assert (said.code, said.err) == (0, "")
    totals = [sync.totals for sync in filled.account.per_sync("9IP56Shn6")]
    loaded = sum(total.row_count for total in totals)
    assert f"{sum(total.rows_in for total in totals)} rows = {loaded} in the lake + " in said.out
    assert said.out.endswith(
        "All agrees: every event that belongs into the lake is there, exactly once.\n"
    )
    assert everything_below(filled.folder) == before


def test_as_json_with_the_numbers_of_the_generators_own_books(
    terminal: Terminal, filled: SampleLake
) -> None:
    found = terminal.run(*IOS, "--json").json
    totals = [sync.totals for sync in filled.account.per_sync("9IP56Shn6")]
    for name, ours in [
        ("rows_in", "rows_in"),
        ("loaded", "row_count"),
        ("duplicates", "duplicates"),
        ("rejected", "rejected"),
    ]:
        assert found[name] == sum(getattr(total, ours) for total in totals)
    assert found["agrees"] is True
    assert (found["from"], found["to"], found["differences"]) == (None, None, [])
    assert found["raw_files"]["waiting"] == []
    assert sum(table["loaded"] for table in found["tables"]) == found["loaded"]


def test_a_range(terminal: Terminal, filled: SampleLake) -> None:
    parts = [
        terminal.run(*IOS, *words, "--json").json
        for words in (("--to", "2026-10-02"), ("--from", "2026-10-02"))
    ]
    assert [part["from"] for part in parts] == [None, "2026-10-02T00:00:00Z"]
    whole = terminal.run(*IOS, "--json").json
    assert sum(part["loaded"] for part in parts) == whole["loaded"]
    one = ("--from", "2026-10-01T00", "--to", "2026-10-01T01")
    assert terminal.run(*IOS, *one).out.startswith("ios_prod, 2026-10-01T00 to 2026-10-01T01: ")


def test_what_differs_is_told_by_partition_with_the_command_that_mends_it(
    terminal: Terminal, filled: SampleLake
) -> None:
    gone = data_file(filled)
    table, day, hour = (part.name.split("=")[1] for part in [*gone.parents][2::-1])
    gone.unlink()
    said = terminal.run(*IOS)
    assert said.code == 1
    (row,) = (row for row in said.rows if row[:2] == [table, f"day={day}/hr={hour}"])
    assert row[2].startswith("the catalog says")
    assert "missing: " in row[2]
    assert row[4] == "0"  # are there
    assert "1 partition of ios_prod differs from the archive: " in said.err
    end = f"{day}T{int(hour) + 1:02}"
    assert f"datalake replay --source ios_prod --from {day}T{hour} --to {end}\n" in said.err
    found = terminal.run(*IOS, "--json")
    assert (found.code, found.json["agrees"]) == (1, False)
    (difference,) = found.json["differences"]
    assert (difference["name"], difference["found"]) == (table, 0)
    assert {example["kind"] for example in difference["examples"]} == {"missing"}


def test_what_waits_is_told_and_no_difference(terminal: Terminal, unsynced: SampleLake) -> None:
    said = terminal.run(*IOS)
    assert said.code == 0
    assert "Waiting for the next sync: " in said.err
    assert "segment-logs/9IP56Shn6/1790812800000/" in said.err
    assert "All agrees" in said.out


def test_files_that_changed_or_went_away_are_told(terminal: Terminal, filled: SampleLake) -> None:
    files = sorted((filled.folder / "data/segment-logs/9IP56Shn6").rglob("*.gz"))
    files[0].unlink()
    files[-1].write_bytes(b"")
    said = terminal.run(*IOS)
    assert said.code == 1
    assert "warning: No longer in the archive: 1 raw file (segment-logs/9IP56Shn6/" in said.err
    assert f"{files[0].name}). " in said.err
    assert "of the lake cannot be checked." in said.err
    assert "warning: Changed after being loaded: 1 raw file (" in said.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--source", "nobody"), "Source 'nobody' is not in the settings"),
        (("--source", "ios_prod", "--from", "yesterday"), "'yesterday' is not a time"),
        (
            ("--source", "ios_prod", "--from", "2026-10-02", "--to", "2026-10-01"),
            "--from 2026-10-02 is not before --to 2026-10-01",
        ),
    ],
)
def test_wrong_use(
    terminal: Terminal, filled: SampleLake, words: tuple[str, ...], message: str
) -> None:
    said = terminal.run("audit", *words)
    assert (said.code, said.out) == (2, "")
    assert message in said.err
