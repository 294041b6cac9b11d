"""`datalake sync`: through Dagster, without Spark; test_demo has the real thing."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.support.lakes.jobs import SETTINGS, SampleLake
from tests.support.lakes.platform import engine_with
from tests.support.terminal import datalake, everything_below

# Dagster itself asks a nested resource's context for what it has deprecated.
a_resource_in_a_resource = pytest.mark.filterwarnings("ignore:InitResourceContext.dagster_run")


@pytest.mark.usefixtures("in_process")
def test_every_enabled_source_is_synced_in_turn(unsynced: SampleLake) -> None:
    result = datalake("sync", "--from", "2026-10-01", "--to", "2026-10-02")
    generated, first_day = unsynced.generated, [date(2026, 10, 1)]
    expected = {
        s.slug: generated.expected(s.id, generated.at_once(s.id, first_day)).totals
        for s in generated.sources
    }
    assert [(row[0], row[1], row[3], row[4], row[5]) for row in result.rows] == [
        (slug, "finished", str(e.row_count), str(e.duplicates), str(e.rejected))
        for slug, e in expected.items()
    ]
    assert "day folder 2026-10-01: reading" in result.err
    assert "Emitting" not in result.err and "STEP_" not in result.err


@pytest.mark.usefixtures("in_process")
def test_one_source_and_some_days_only(unsynced: SampleLake) -> None:
    words = ("sync", "--source", "9IP56Shn6", "--from", "2026-10-02T05", "--to", "2026-10-03")
    [report] = datalake(*words, "--json").json
    folders = {file.folder.isoformat() for file in unsynced.generated.files["9IP56Shn6"]}
    assert folders == {"2026-10-01", "2026-10-02"}
    second = [f for f in unsynced.generated.files["9IP56Shn6"] if f.folder.day == 2]
    assert (report["type"], report["database"]) == ("source", "ios_prod")
    assert report["raw_files"] == len(second)
    assert report["rows_in"] == sum(file.rows_in for file in second)
    assert report["dagster_run_id"]


@a_resource_in_a_resource
def test_with_nothing_new_no_spark_starts_and_no_file_is_added(
    filled: SampleLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = Mock(side_effect=AssertionError("Spark was started"))
    monkeypatch.setattr("spark_resources.engines.local.local_dataflow", starts)
    data = filled.folder / "data/segment-data/data"
    before = everything_below(data)
    reports = datalake("sync", "--json").json
    counts = [(r["status"], r["row_count"], r["raw_files"]) for r in reports]
    assert counts == [("finished", 0, 0)] * 2
    assert everything_below(data) == before


@a_resource_in_a_resource
@pytest.mark.usefixtures("empty_archive")
def test_an_empty_archive_is_a_success_with_a_warning() -> None:
    result = datalake("sync", "--source", "ios_prod")
    assert "warning: segment-logs/9IP56Shn6 holds no raw files yet" in result.err
    [report] = datalake("reports", "--json").json
    assert (report["status"], report["row_count"]) == ("finished", 0)


def test_missing_archives_are_all_named_before_anything_is_written(settings_file: Path) -> None:
    result = datalake("sync", code=2)
    assert "segment-logs/wX3mQ8rTz does not exist" in result.err
    assert "segment-logs/9IP56Shn6 does not exist" in result.err
    assert list(settings_file.parent.iterdir()) == [settings_file]


@pytest.mark.usefixtures("no_java")
def test_without_java_nothing_is_begun(unsynced: SampleLake) -> None:
    before = everything_below(unsynced.folder)
    result = datalake("sync", code=2)
    assert result.out == ""
    assert "Java was not found" in result.err
    assert everything_below(unsynced.folder) == before


def test_where_no_source_is_enabled_one_must_be_named(settings_file: Path) -> None:
    settings_file.write_text(SETTINGS.replace("    slug", "    enabled: false\n    slug"))
    assert "No source is enabled" in datalake("sync", code=2).err


@pytest.fixture
def fail_by(unsynced: SampleLake, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Fail every sync with an error."""

    def fail_by(error: BaseException) -> None:
        engine = engine_with(Mock(side_effect=error))
        monkeypatch.setattr("spark_resources.engines.local.local_engine", lambda: engine)

    return fail_by


def test_a_failed_run_ends_with_1_its_message_and_no_stack_trace(
    fail_by: Callable[..., None],
) -> None:
    fail_by(OSError("the disk is full"))
    result = datalake("sync", code=1)
    assert [row[:2] for row in result.rows] == [["web_shop", "failed"], ["ios_prod", "failed"]]
    assert "error: web_shop: OSError: the disk is full" in result.err
    assert "Traceback" not in result.err


def test_ctrl_c_ends_the_run_and_skips_the_next(fail_by: Callable[..., None]) -> None:
    fail_by(KeyboardInterrupt())
    result = datalake("sync", code=130)
    assert "interrupted" in result.err
    reports = datalake("reports", "--json").json
    assert [(r["database"], r["status"]) for r in reports] == [("web_shop", "failed")]
