"""The commands `audit` and `suppress`."""

from pathlib import Path

import pytest

from eventlake.rules.clock import parse_range
from eventlake.runs.unit import Window
from tests.support.lakes.jobs import SampleLake, drained
from tests.support.lakes.settings import lake_in
from tests.support.terminal import datalake, everything_below, program

IOS = ("audit", "--source", "ios_prod")


def data_file(sample: SampleLake) -> Path:
    """A data file of ios_prod."""
    return min((sample.folder / "data/segment-data/data/9IP56Shn6").rglob("*.parquet"))


def test_all_agrees_and_nothing_is_changed(filled: SampleLake) -> None:
    before = everything_below(filled.folder)
    result = datalake(*IOS)
    assert result.err == ""
    totals = [sync.totals for sync in filled.generated.per_sync("9IP56Shn6")]
    loaded = sum(total.row_count for total in totals)
    assert f"{sum(total.rows_in for total in totals)} rows = {loaded} in the lake + " in result.out
    assert result.out.endswith(
        "All agrees: every event that belongs in the lake is there, exactly once.\n"
    )
    assert everything_below(filled.folder) == before


def test_as_json_with_the_numbers_of_the_generator(filled: SampleLake) -> None:
    found = datalake(*IOS, "--json").json
    totals = [sync.totals for sync in filled.generated.per_sync("9IP56Shn6")]
    assert found["loaded"] == sum(total.row_count for total in totals)
    for name in ("rows_in", "duplicates", "rejected"):
        assert found[name] == sum(getattr(total, name) for total in totals)
    assert found["agrees"] is True
    assert (found["from"], found["to"], found["differences"]) == (None, None, [])
    assert found["raw_files"]["waiting"] == []
    assert sum(table["loaded"] for table in found["tables"]) == found["loaded"]


def test_a_range(filled: SampleLake) -> None:
    parts = [
        datalake(*IOS, *words, "--json").json
        for words in (("--to", "2026-10-02"), ("--from", "2026-10-02"))
    ]
    assert [part["from"] for part in parts] == [None, "2026-10-02T00:00:00Z"]
    whole = datalake(*IOS, "--json").json
    assert sum(part["loaded"] for part in parts) == whole["loaded"]
    one = ("--from", "2026-10-01T00", "--to", "2026-10-01T01")
    assert datalake(*IOS, *one).out.startswith("ios_prod, 2026-10-01T00 to 2026-10-01T01: ")


def test_a_range_without_rows_is_reported(filled: SampleLake) -> None:
    result = datalake(*IOS, "--from", "2020-01-01", "--to", "2020-01-02")
    assert result.out.endswith(
        "Nothing to compare: neither the archive nor the lake has rows in this range.\n"
    )


def test_a_difference_is_shown_by_partition_with_the_command_that_repairs_it(
    filled: SampleLake,
) -> None:
    gone = data_file(filled)
    table, day, hour = (part.name.split("=")[1] for part in [*gone.parents][2::-1])
    gone.unlink()
    result = datalake(*IOS, code=1)
    (row,) = (row for row in result.rows if row[:2] == [table, f"day={day}/hr={hour}"])
    assert row[2].startswith("the catalog says")
    assert "missing: " in row[2]
    assert row[4] == "0"  # are there
    assert "1 partition of ios_prod differs from the archive: " in result.err
    end = f"{day}T{int(hour) + 1:02}"
    assert f"datalake replay --source ios_prod --from {day}T{hour} --to {end}\n" in result.err
    found = datalake(*IOS, "--json", code=1)
    assert found.json["agrees"] is False
    (difference,) = found.json["differences"]
    assert (difference["name"], difference["found"]) == (table, 0)
    assert {example["kind"] for example in difference["examples"]} == {"missing"}


def test_waiting_files_are_named_and_are_no_difference(unsynced: SampleLake) -> None:
    result = datalake(*IOS)
    assert "Waiting for the next sync: " in result.err
    assert "segment-logs/9IP56Shn6/1790812800000/" in result.err
    assert "What was loaded agrees" in result.out


def test_changed_and_missing_files_are_named(filled: SampleLake) -> None:
    files = sorted((filled.folder / "data/segment-logs/9IP56Shn6").rglob("*.gz"))
    files[0].unlink()
    files[-1].write_bytes(b"")
    result = datalake(*IOS, code=1)
    assert "warning: No longer in the archive: 1 raw file (segment-logs/9IP56Shn6/" in result.err
    assert f"{files[0].name}). " in result.err
    assert "of the lake cannot be checked." in result.err
    assert "warning: Changed after being loaded: 1 raw file (" in result.err


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A lake without data."""
    lake_in(tmp_path, {"id": "a1", "slug": "shop"}, {"id": "b2", "slug": "app"})
    return tmp_path


def listed(*words: str) -> list[tuple[str, str, str | None]]:
    result = datalake("suppress", "list", "--json", *words)
    return [(row["kind"], row["id"], row["source"]) for row in result.json]


def test_people_are_added_to_the_lists_and_removed(empty: Path) -> None:
    (empty / "ids.txt").write_text("\ufeffu1\n\n u2 \nu1\n")
    result = datalake("suppress", "add", "--file", "ids.txt", "7")
    assert result.out == (
        "3 user ids added for the whole lake; 3 user ids and 0 anonymous ids suppressed now.\n"
    )
    assert "until their days are replayed: `datalake suppress rows` lists" in result.err
    datalake("suppress", "add", "--anonymous-id", "--source", "shop", "--", "-a1")
    result = datalake("suppress", "remove", "7", "8", "--json")
    counts = {"given": 2, "removed": 1, "suppressed": {"userId": 2, "anonymousId": 1}}
    assert result.json == {"kind": "userId", "source": None, "version": 3, **counts}
    everywhere = [("userId", "u1", None), ("userId", "u2", None)]
    assert listed() == [*everywhere, ("anonymousId", "-a1", "shop")]
    assert listed("--source", "app") == everywhere
    assert [row[:3] for row in datalake("suppress", "list").rows] == [
        ["userId", "u1", "(all)"],
        ["userId", "u2", "(all)"],
        ["anonymousId", "-a1", "shop"],
    ]


def test_ids_may_come_through_a_pipe(empty: Path) -> None:
    result = program("suppress", "add", "--file", "-", "--json", cwd=empty, stdin="u1\nu2\n")
    assert result.json["added"] == 2


def test_rows_that_remain_are_listed_with_the_replays_that_remove_them(
    filled: SampleLake,
) -> None:
    assert datalake("suppress", "rows").out.startswith("The lake has no rows")
    query = (
        "select user_id, count(*) as n, count(distinct day) as known_days from web_shop.page "
        "where user_id is not null group by user_id order by 3 desc, 2 desc, 1 limit 1"
    )
    (busiest,) = datalake("sql", query, "--json").json
    datalake("suppress", "add", busiest["user_id"], "--source", "web_shop")

    result = datalake("suppress", "rows", "--json", code=1)
    pages = [row for row in result.json["rows"] if row["table"] == "web_shop.page"]
    assert sum(row["rows"] for row in pages) == busiest["n"]
    assert len(pages) == busiest["known_days"]
    shown = datalake("suppress", "rows", code=1)
    assert all(f"  {command}\n" in shown.out for command in result.json["replays"])

    for command in result.json["replays"]:
        carry_out(filled, command)
    assert datalake("suppress", "rows", "--json").json == {"rows": [], "replays": []}
    datalake("audit", "--source", "web_shop")


def carry_out(filled: SampleLake, command: str) -> None:
    """A replay as it is printed, without Spark and without Dagster."""
    _, _, *words = command.split()
    options = [*zip(words[::2], words[1::2], strict=True)]
    given = dict(options)
    lake, source = filled.lake, filled.lake.settings.source(given["--source"])
    window = Window(*parse_range(given["--from"], given["--to"]))
    tables = tuple(value for name, value in options if name == "--table")
    drained(lake.settings, source, window=window, tables=tables)


def test_payloads_of_earlier_runs_are_not_shown(filled: SampleLake, tmp_path: Path) -> None:
    words = ("records", "--source", "web_shop", "--status", "DUPLICATE", "--json")
    before = [row for row in datalake(*words).json if '"userId":"' in row["record_payload"]]
    payload, id = before[0]["record_payload"], before[0]["identifier"]
    user = payload.split('"userId":"')[1].split('"')[0]
    datalake("suppress", "add", user)

    after = {row["identifier"]: row["record_payload"] for row in datalake(*words).json}
    assert after[id] is None and user not in str(after)
    one = datalake("records", "--source", "web_shop", "--id", id, "--json")
    assert user not in one.out and user not in one.err
    datalake("records", "--source", "web_shop", "--out", "all.jsonl")
    assert user not in (tmp_path / "all.jsonl").read_text()
