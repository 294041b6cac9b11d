"""Which runs have a record log, and what is said of one that has none."""

from datetime import UTC, datetime

import pytest

from eventlake.lake import Lake
from eventlake.records.logs import newest_log, run_log, run_logs
from eventlake.rules import paths
from eventlake.rules.counts import UnitReport
from eventlake.rules.errors import StateError, UsageError
from eventlake.runs.open_runs import close_run
from eventlake.runs.record_log import write_metadata
from eventlake.state.report import RunFacts
from tests.support.lakes.archive import track
from tests.support.lakes.recorded import expire
from tests.support.lakes.runs import Runs, utc


def test_a_log_has_its_files_in_order_and_knows_its_run(lake: Lake) -> None:
    (log,) = run_logs(lake, lake.settings.sources[0])
    assert (log.run_id, log.run.kind, log.run.state) == ("R1", "sync", "finished")
    assert log.run.started_at == utc("2026-10-20T00:01:00.123456")
    assert [file.path.rsplit("/", 1)[1] for file in log.files] == [
        "records_loaded.0.parquet",
        "records_rejected.0.parquet",
        "records_duplicate.0.parquet",
        "records_null.0.parquet",
        "records_skipped.0.parquet",
    ]


def test_the_tenth_file_comes_after_the_ninth(lake: Lake) -> None:
    folder = paths.tracking("W1", "S1", "R1")
    for n in (10, 9, 1):
        lake.storage.copy(
            f"{folder}/records_loaded.0.parquet", f"{folder}/records_loaded.{n}.parquet"
        )
    log = run_log(lake, lake.settings.sources, "R1")
    assert [file.number for file in log.files[:4]] == [0, 1, 9, 10]


@pytest.mark.parametrize(
    "name",
    ["records_loaded.parquet", "records_loaded.x.parquet", "records_lost.0.parquet", "notes.txt"],
)
def test_what_is_not_named_like_a_log_is_not_read(lake: Lake, name: str) -> None:
    folder = paths.tracking("W1", "S1", "R1")
    before = run_log(lake, lake.settings.sources, "R1")
    lake.storage.write(f"{folder}/{name}", b"")
    assert run_log(lake, lake.settings.sources, "R1") == before


def test_the_newest_run_comes_first_and_one_without_records_is_passed_over(
    runs: Runs, lake: Lake
) -> None:
    source = lake.settings.sources[0]
    runs.archive.day("2026-10-02").file("b", track("Order", "m3", "2026-10-02"))
    runs.sync()
    runs.sync()  # with nothing to do
    assert [(log.run_id, bool(log.files)) for log in run_logs(lake, source)] == [
        ("R3", False),
        ("R2", True),
        ("R1", True),
    ]
    assert newest_log(lake, source).run_id == "R2"


def test_a_run_is_known_by_the_id_that_dagster_gave_it(lake: Lake) -> None:
    now = datetime.now(UTC)
    facts = RunFacts("W1", "S1", "shop", "R5", now, "", dagster_run_id="4711-abc")
    close_run(lake.storage, lake.catalog, facts, UnitReport(), now)
    assert run_log(lake, lake.settings.sources, "4711-abc").run_id == "R5"


def test_an_unknown_run_is_told_with_those_that_there_are(lake: Lake) -> None:
    with pytest.raises(UsageError) as error:
        run_log(lake, lake.settings.sources, "R9")
    assert "No run of shop has the id 'R9'" in str(error.value)
    assert "R1 (shop)" in str(error.value)


@pytest.mark.parametrize("run", ["", ".", "..", "../S1/R1", "R1/"])
def test_a_run_is_not_a_path(lake: Lake, run: str) -> None:
    with pytest.raises(UsageError, match="No run of shop has the id"):
        run_log(lake, lake.settings.sources, run)


def test_a_log_that_is_gone_is_told_from_a_run_that_never_was(lake: Lake) -> None:
    expire(lake, "R1")
    with pytest.raises(UsageError) as error:
        run_log(lake, lake.settings.sources, "R1")
    assert "Run R1 of shop began 2026-10-20 00:01 UTC" in str(error.value)
    assert "kept 14 days" in str(error.value)


def test_before_the_first_record_there_is_no_newest_log(lake: Lake) -> None:
    source = lake.settings.sources[0]
    expire(lake, "R1")
    with pytest.raises(UsageError, match="`datalake sync` makes one, and logs are kept 14 days"):
        newest_log(lake, source)
    write_metadata(lake.storage, RunFacts("W1", "S1", "shop", "R2", utc("2026-10-20"), ""), "x")
    with pytest.raises(UsageError, match="had no records to log"):
        newest_log(lake, source)


def test_metadata_that_somebody_edited_are_named(lake: Lake) -> None:
    lake.storage.write(f"{paths.tracking('W1', 'S1', 'R1')}/metadata.json", b"{}")
    with pytest.raises(StateError, match=r"R1/metadata\.json does not describe a run"):
        run_logs(lake, lake.settings.sources[0])
