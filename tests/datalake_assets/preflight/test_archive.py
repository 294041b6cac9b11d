"""Why do I see no data? What `check` finds of an archive and of the syncs of it."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteInstigatorOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    ScheduleInstigatorData,
)

from datalake_assets.preflight.archive import Schedules, archive_findings
from eventlake.lake import Lake
from tests.support.aws.preflight import SOURCE_ID
from tests.support.faults.flows import Raises, flow
from tests.support.lakes.archive import Archive, track
from tests.support.lakes.jobs import drained
from tests.support.lakes.settings import settings_of


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    archive = Archive(tmp_path / f"segment-logs/{SOURCE_ID}")
    archive.day("2026-10-01").file("a", track("Order", "m1", "2026-10-01T07:00"))
    return archive


def lake_in(folder: Path, **source: Any) -> Lake:
    return Lake.open(settings_of(folder, {"id": SOURCE_ID, "slug": "ios_prod", **source}))


def look(lake: Lake, schedules: Schedules | None = None) -> dict[str, str]:
    found = archive_findings(lake, lake.settings.sources[0], schedules)
    return {finding.what: f"{finding.sign} {finding.message}" for finding in found}


def test_no_raw_folder(tmp_path: Path) -> None:
    said = look(lake_in(tmp_path))["archive of ios_prod"]
    assert said.startswith("✗ The raw archive of source 'ios_prod' is not there")


def test_no_raw_files(tmp_path: Path) -> None:
    (tmp_path / f"segment-logs/{SOURCE_ID}").mkdir(parents=True)
    assert look(lake_in(tmp_path))["archive of ios_prod"] == (
        f"! {tmp_path}/segment-logs/{SOURCE_ID} holds no raw files yet"
    )


def test_only_files_from_before_the_start(tmp_path: Path, archive: Archive) -> None:
    said = look(lake_in(tmp_path, start="2026-11-01"))["archive of ios_prod"]
    assert said.startswith("!")
    assert "up to 2026-10-01, which syncs ignore: `start` is 2026-11-01" in said


def test_files_that_wait_and_files_that_are_loaded(tmp_path: Path, archive: Archive) -> None:
    lake = lake_in(tmp_path)
    assert look(lake)["archive of ios_prod"].endswith("; 1 wait for a sync")
    drained(lake.settings)
    found = look(lake)
    assert found["archive of ios_prod"].endswith("days 2026-10-01 to 2026-10-01")
    assert found["tables of ios_prod"] == "✓ 1 in database ios_prod"
    assert len(found) == 2


def test_a_source_that_is_not_enabled(tmp_path: Path, archive: Archive) -> None:
    said = look(lake_in(tmp_path, enabled=False))["schedule of ios_prod"]
    assert said.startswith("! no syncs by schedule, since the source is not enabled")


def test_the_last_sync_failed(tmp_path: Path, archive: Archive) -> None:
    refused = OSError(
        "When reading information for key 'segment-logs/a' in bucket 'lake-bucket': AWS "
        "Error ACCESS_DENIED during HeadObject operation: No response body."
    )
    lake = lake_in(tmp_path)
    with pytest.raises(Exception, match="does not have permissions"):
        drained(lake.settings, flow=flow(before_stage=Raises(refused)))
    said = look(lake)["last sync of ios_prod"]
    assert said.startswith("! failed at ")
    assert (
        " UTC with Segment.InsufficientPermissions: Datalake does not have permissions to" in said
    )
    drained(lake.settings)
    assert "last sync of ios_prod" not in look(lake)


def switched_on(schedule: str) -> InstigatorState:
    location = RegisteredCodeLocationOrigin("datalake")
    origin = RemoteInstigatorOrigin(RemoteRepositoryOrigin(location, "__repository__"), schedule)
    cron = ScheduleInstigatorData("0 */2 * * *")
    return InstigatorState(origin, InstigatorType.SCHEDULE, InstigatorStatus.RUNNING, cron)


def test_a_schedule_that_is_off_while_files_wait(tmp_path: Path, archive: Archive) -> None:
    lake = lake_in(tmp_path)
    (tmp_path / "home").mkdir()
    with dg.DagsterInstance.local_temp(str(tmp_path / "home")) as instance:
        found = look(lake, Schedules(lambda: instance))
        assert found["schedule of ios_prod"].startswith("! off, and files wait")
        instance.add_instigator_state(switched_on("sync_ios_prod_schedule"))
        assert "schedule of ios_prod" not in look(lake, Schedules(lambda: instance))


def test_dagster_is_not_asked_where_nothing_waits(tmp_path: Path, archive: Archive) -> None:
    def instance() -> dg.DagsterInstance:
        raise AssertionError("asked")

    lake = lake_in(tmp_path)
    drained(lake.settings)
    assert len(look(lake, Schedules(instance))) == 2
