"""What `check` finds of an archive and of its syncs: why do I see no data?"""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.scheduler.instigation import InstigatorStatus

from datalake_assets.instance.schedules import Schedules, stopped_schedules
from datalake_assets.preflight.archive import archive_findings
from eventlake.lake import Lake
from tests.support.aws.preflight import SOURCE_ID, shown
from tests.support.faults.flows import Raises, flow
from tests.support.lakes.archive import Archive, page, track
from tests.support.lakes.jobs import drained
from tests.support.lakes.platform import switched_on
from tests.support.lakes.settings import settings_of


def lake_in(folder: Path, **source: Any) -> Lake:
    """A lake with one raw file."""
    day = Archive(folder / f"segment-logs/{SOURCE_ID}").day("2026-10-01")
    day.file("a", track("Order", "m1", "2026-10-01T07:00"))
    return Lake.open(settings_of(folder, {"id": SOURCE_ID, "slug": "ios_prod", **source}))


def findings_of(
    lake: Lake, schedules: Schedules | None = None, closely: bool = False
) -> dict[str, str]:
    return shown(archive_findings(lake, lake.settings.sources[0], schedules, closely=closely))


def test_no_raw_files_and_no_raw_folder(tmp_path: Path) -> None:
    lake, folder = lake_in(tmp_path), tmp_path / f"segment-logs/{SOURCE_ID}"
    shutil.rmtree(folder)
    said = findings_of(lake)["archive of ios_prod"]
    assert said.startswith("✗ The raw archive of source 'ios_prod' is not there")
    folder.mkdir()
    assert findings_of(lake)["archive of ios_prod"] == f"! {folder} holds no raw files yet"


def test_only_files_from_before_the_start(tmp_path: Path) -> None:
    said = findings_of(lake_in(tmp_path, start="2026-11-01"))["archive of ios_prod"]
    assert said.startswith("!")
    assert "up to 2026-10-01, which syncs ignore: `start` is 2026-11-01" in said


def test_files_that_wait_and_files_that_are_loaded(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    assert findings_of(lake)["archive of ios_prod"].endswith("; waiting for a sync: 1")
    drained(lake.settings)
    found = findings_of(lake)
    assert found["archive of ios_prod"].endswith("day 2026-10-01")
    assert found["tables of ios_prod"] == "✓ 1 in database ios_prod"
    assert len(found) == 2


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("id\tevent\ttime", "The line is not JSON"),
        ("[1, 2]", "The line is JSON, but not an object"),
        ('{"type": "track", "event": "x"}', "`receivedAt` is missing"),
        (page(None, "2026-10-01T07:00"), "`messageId` is missing"),
    ],
)
def test_a_sample_of_lines_shows_the_rejected_ones(tmp_path: Path, line: Any, why: str) -> None:
    lake = lake_in(tmp_path)
    found = archive_findings(lake, lake.settings.sources[0], closely=True)
    assert [f.message for f in found][-1] == "1 line of a sample can be loaded"
    raw = Archive(tmp_path / f"segment-logs/{SOURCE_ID}")
    raw.day("2026-10-02").file("b", *[page("m", "2026-10-02T07:00"), "", line] * 3)
    found = archive_findings(lake, lake.settings.sources[0], closely=True)
    [said] = [finding for finding in found if finding.what == "lines of ios_prod"]
    assert (said.level, said.error) == ("warning", None)
    assert said.message.startswith("3 of 7 lines of a sample would be rejected: 3, the first in ")
    assert f"b.gz line 3: {why}" in said.message


def test_a_source_that_is_not_enabled(tmp_path: Path) -> None:
    said = findings_of(lake_in(tmp_path, enabled=False))["schedule of ios_prod"]
    assert said.startswith("! no syncs by schedule, since the source is not enabled")


def test_the_last_sync_failed(tmp_path: Path) -> None:
    refused = OSError(
        "When reading information for key 'segment-logs/a' in bucket 'lake-bucket': AWS "
        "Error ACCESS_DENIED during HeadObject operation: No response body."
    )
    lake = lake_in(tmp_path)
    with pytest.raises(Exception, match="does not have permissions"):
        drained(lake.settings, flow=flow(before_stage=Raises(refused)))
    said = findings_of(lake, closely=True)["last sync of ios_prod"]
    assert said.startswith("! failed at ")
    assert (
        " UTC with Segment.InsufficientPermissions: Eventlake does not have permissions to" in said
    )
    drained(lake.settings)
    assert "last sync of ios_prod" not in findings_of(lake, closely=True)


def test_a_schedule_that_is_off_while_files_wait(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    (tmp_path / "home").mkdir()
    with dg.DagsterInstance.local_temp(str(tmp_path / "home")) as instance:
        schedules = partial(Schedules, lambda: stopped_schedules(instance))
        assert "schedule of ios_prod" not in findings_of(lake, schedules())
        switched_off = switched_on("sync_ios_prod_schedule").with_status(InstigatorStatus.STOPPED)
        instance.add_instigator_state(switched_off)
        found = findings_of(lake, schedules())
        assert found["schedule of ios_prod"].startswith("! off, and files wait")


def test_dagster_is_not_queried_where_nothing_waits(tmp_path: Path) -> None:
    def asked() -> frozenset[str]:
        raise AssertionError("asked")

    lake = lake_in(tmp_path)
    drained(lake.settings)
    assert len(findings_of(lake, Schedules(asked))) == 2
