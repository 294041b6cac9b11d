"""The commands `audit` and `suppress`."""

from pathlib import Path

import pytest

from eventlake.rules.clock import parse_range
from eventlake.runs.unit import Window
from tests.support.lakes.jobs import SampleLake, drained
from tests.support.terminal import Terminal, everything_below, program

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


SETTINGS = """\
workspace_id: W1
storage: ./data
sources: [{id: a1, slug: shop}, {id: b2, slug: app}]
"""


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A lake in which nothing is yet."""
    (tmp_path / "lake.yaml").write_text(SETTINGS)
    return tmp_path


def listed(terminal: Terminal, *words: str) -> list[tuple[str, str, str | None]]:
    said = terminal.run("suppress", "list", "--json", *words)
    return [(row["kind"], row["id"], row["source"]) for row in said.json]


def test_people_come_onto_the_lists_and_go_from_them(terminal: Terminal, empty: Path) -> None:
    (empty / "ids.txt").write_text("\ufeffu1\n\n u2 \nu1\n")
    said = terminal.run("suppress", "add", "--file", "ids.txt", "7")
    assert said.code == 0
    assert said.out == (
        "3 user ids added for the whole lake; 3 user ids and 0 anonymous ids suppressed now.\n"
    )
    assert "until their days are replayed: `datalake suppress rows` tells which" in said.err
    terminal.run("suppress", "add", "--anonymous-id", "--source", "shop", "--", "-a1")
    said = terminal.run("suppress", "remove", "7", "8", "--json")
    assert said.json == {
        "kind": "userId",
        "source": None,
        "given": 2,
        "removed": 1,
        "version": 3,
        "suppressed": {"userId": 2, "anonymousId": 1},
    }
    everywhere = [("userId", "u1", None), ("userId", "u2", None)]
    assert listed(terminal) == [*everywhere, ("anonymousId", "-a1", "shop")]
    assert listed(terminal, "--source", "app") == everywhere
    assert [row[:3] for row in terminal.run("suppress", "list").rows] == [
        ["userId", "u1", "(all)"],
        ["userId", "u2", "(all)"],
        ["anonymousId", "-a1", "shop"],
    ]


def test_ids_may_come_through_a_pipe(empty: Path) -> None:
    said = program("suppress", "add", "--file", "-", "--json", cwd=empty, stdin="u1\nu2\n")
    assert said.json["added"] == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "No id was given"),
        ([""], "No id was given"),
        (["--file", "nowhere.txt"], "nowhere.txt cannot be read: No such file"),
        (["--file", "latin.txt"], "latin.txt is not UTF-8 text"),
        (["u1", "--source", "shopp"], "did you mean 'shop'?"),
    ],
)
def test_what_names_nobody_is_refused(
    terminal: Terminal, empty: Path, words: list[str], told: str
) -> None:
    (empty / "latin.txt").write_bytes(b"\xfc\n")
    said = terminal.run("suppress", "add", *words)
    assert (said.code, told in said.err) == (2, True)
    assert not (empty / "data").exists()


def test_rows_that_remain_are_told_with_the_replays_that_remove_them(
    terminal: Terminal, filled: SampleLake
) -> None:
    assert terminal.run("suppress", "rows").out.startswith("No row of anybody")
    query = (
        "select user_id, count(*) as n, count(distinct day) as known_days from web_shop.page "
        "where user_id is not null group by user_id order by 3 desc, 2 desc, 1 limit 1"
    )
    (busiest,) = terminal.run("sql", query, "--json").json
    terminal.run("suppress", "add", busiest["user_id"], "--source", "web_shop")

    said = terminal.run("suppress", "rows", "--json")
    assert said.code == 1
    pages = [row for row in said.json["rows"] if row["table"] == "web_shop.page"]
    assert sum(row["rows"] for row in pages) == busiest["n"]
    assert len(pages) == busiest["known_days"]
    shown = terminal.run("suppress", "rows")
    assert all(f"  {command}\n" in shown.out for command in said.json["replays"])

    for command in said.json["replays"]:
        carry_out(filled, command)
    assert terminal.run("suppress", "rows", "--json").json == {"rows": [], "replays": []}
    assert terminal.run("audit", "--source", "web_shop").code == 0


def carry_out(filled: SampleLake, command: str) -> None:
    """A replay as it is printed, without Spark and without Dagster."""
    _, _, *words = command.split()
    options = [*zip(words[::2], words[1::2], strict=True)]
    given = dict(options)
    lake, source = filled.lake, filled.lake.settings.source(given["--source"])
    window = Window(*parse_range(given["--from"], given["--to"]))
    tables = tuple(value for name, value in options if name == "--table")
    drained(lake.settings, source, window=window, tables=tables)


def test_payloads_of_earlier_runs_are_not_shown(
    terminal: Terminal, filled: SampleLake, tmp_path: Path
) -> None:
    words = ("records", "--source", "web_shop", "--status", "DUPLICATE", "--json")
    before = [row for row in terminal.run(*words).json if '"userId":"' in row["record_payload"]]
    payload, id = before[0]["record_payload"], before[0]["identifier"]
    user = payload.split('"userId":"')[1].split('"')[0]
    terminal.run("suppress", "add", user)

    after = {row["identifier"]: row["record_payload"] for row in terminal.run(*words).json}
    assert after[id] is None and user not in str(after)
    one = terminal.run("records", "--source", "web_shop", "--id", id, "--json")
    assert user not in one.out and user not in one.err
    terminal.run("records", "--source", "web_shop", "--out", "all.jsonl")
    assert user not in (tmp_path / "all.jsonl").read_text()
