"""`datalake sync`: through Dagster, without Spark; test_demo has the real thing."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import NoReturn
from unittest.mock import Mock

import pytest

from spark_resources.engines.base import SparkEngine
from tests.support.lakes.jobs import SETTINGS, SampleLake
from tests.support.lakes.platform import engine_with
from tests.support.terminal import Terminal, everything_below

# Dagster itself asks a nested resource's context for what it has deprecated.
a_resource_in_a_resource = pytest.mark.filterwarnings("ignore:InitResourceContext.dagster_run")


@pytest.fixture
def empty_archive(tmp_path: Path) -> Path:
    (tmp_path / "lake.yaml").write_text(SETTINGS)
    for source in ("wX3mQ8rTz", "9IP56Shn6"):
        (tmp_path / "data/segment-logs" / source).mkdir(parents=True)
    return tmp_path


@pytest.mark.usefixtures("in_process")
def test_every_enabled_source_is_synced_in_turn(terminal: Terminal, unsynced: SampleLake) -> None:
    said = terminal.run("sync", "--from", "2026-10-01", "--to", "2026-10-02")
    assert said.code == 0
    account, first_day = unsynced.account, [date(2026, 10, 1)]
    expected = {
        s.slug: account.expected(s.id, account.day_by_day(s.id, first_day)).totals
        for s in account.sources
    }
    assert [(row[0], row[1], row[3], row[4], row[5]) for row in said.rows] == [
        (slug, "finished", str(e.row_count), str(e.duplicates), str(e.rejected))
        for slug, e in expected.items()
    ]
    assert "day folder 2026-10-01: reading" in said.err
    assert "Emitting" not in said.err and "STEP_" not in said.err


@pytest.mark.usefixtures("in_process")
def test_one_source_and_some_days_only(terminal: Terminal, unsynced: SampleLake) -> None:
    words = ("sync", "--source", "9IP56Shn6", "--from", "2026-10-02T05", "--to", "2026-10-03")
    [report] = terminal.run(*words, "--json").json
    folders = {file.folder.isoformat() for file in unsynced.account.files["9IP56Shn6"]}
    assert folders == {"2026-10-01", "2026-10-02"}
    second = [f for f in unsynced.account.files["9IP56Shn6"] if f.folder.day == 2]
    assert (report["type"], report["database"]) == ("source", "ios_prod")
    assert (report["raw_files"], report["rows_in"]) == (
        len(second),
        sum(file.rows_in for file in second),
    )
    assert report["dagster_run_id"]


@a_resource_in_a_resource
def test_with_nothing_new_no_spark_starts_and_no_file_is_added(
    terminal: Terminal, filled: SampleLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*_: object) -> NoReturn:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("spark_resources.engines.local.local_dataflow", start)
    data = filled.folder / "data/segment-data/data"
    before = everything_below(data)
    reports = terminal.run("sync", "--json").json
    assert [(r["status"], r["row_count"], r["raw_files"]) for r in reports] == [
        ("finished", 0, 0),
        ("finished", 0, 0),
    ]
    assert everything_below(data) == before


@a_resource_in_a_resource
def test_an_empty_archive_is_a_success_with_a_warning(
    terminal: Terminal, empty_archive: Path
) -> None:
    said = terminal.run("sync", "--source", "ios_prod")
    assert said.code == 0
    assert "warning: segment-logs/9IP56Shn6 holds no raw files yet" in said.err
    [report] = terminal.run("reports", "--json").json
    assert (report["status"], report["row_count"]) == ("finished", 0)


def test_missing_archives_are_all_named_before_anything_is_written(
    terminal: Terminal, tmp_path: Path
) -> None:
    (tmp_path / "lake.yaml").write_text(SETTINGS)
    said = terminal.run("sync")
    assert said.code == 2
    assert "segment-logs/wX3mQ8rTz does not exist" in said.err
    assert "segment-logs/9IP56Shn6 does not exist" in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["lake.yaml"]


@pytest.mark.usefixtures("no_java")
def test_without_java_nothing_is_begun(terminal: Terminal, unsynced: SampleLake) -> None:
    before = everything_below(unsynced.folder)
    said = terminal.run("sync")
    assert (said.code, said.out) == (2, "")
    assert "Java was not found" in said.err
    assert everything_below(unsynced.folder) == before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--source", "ios_prd"], "did you mean 'ios_prod'?"),
        (["--from", "2026-10-01"], "--from and --to go together"),
        (["--from", "2026-10-01", "--to", "2026-10-01"], "is not before --to"),
        (["--from", "1 Oct", "--to", "2026-10-01"], "'1 Oct' is not a time"),
    ],
)
def test_wrong_words_are_told_apart(
    terminal: Terminal, unsynced: SampleLake, words: list[str], told: str
) -> None:
    said = terminal.run("sync", *words)
    assert said.code == 2
    assert told in said.err


def test_where_no_source_is_enabled_one_must_be_named(terminal: Terminal, tmp_path: Path) -> None:
    disabled = SETTINGS.replace("    slug", "    enabled: false\n    slug")
    (tmp_path / "lake.yaml").write_text(disabled)
    said = terminal.run("sync")
    assert said.code == 2
    assert "No source is enabled" in said.err


def failing_engine(error: BaseException) -> Callable[[], SparkEngine]:
    return lambda: engine_with(Mock(side_effect=error))


def test_a_failed_run_ends_with_1_its_message_and_no_stack_trace(
    terminal: Terminal, unsynced: SampleLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "spark_resources.engines.local.local_engine", failing_engine(OSError("the disk is full"))
    )
    said = terminal.run("sync")
    assert said.code == 1
    assert [row[:2] for row in said.rows] == [["web_shop", "failed"], ["ios_prod", "failed"]]
    assert "error: web_shop: OSError: the disk is full" in said.err
    assert "Traceback" not in said.err


def test_ctrl_c_ends_the_run_and_what_would_have_come_after_it(
    terminal: Terminal, unsynced: SampleLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "spark_resources.engines.local.local_engine", failing_engine(KeyboardInterrupt())
    )
    said = terminal.run("sync")
    assert said.code == 130
    assert "interrupted" in said.err
    reports = terminal.run("reports", "--json").json
    assert [(r["database"], r["status"]) for r in reports] == [("web_shop", "failed")]
