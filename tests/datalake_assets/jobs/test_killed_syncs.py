"""A killed Dagster run is closed by the sensor and completed by the next sync."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from datalake_assets.sensors.dead_runs import close_dead
from eventlake.rules import paths
from eventlake.runs.report_history import newest_reports
from eventlake.state.source_state import read_state
from eventlake.storage import LocalStorage
from tests.support.lakes.archive import Archive, identify, order
from tests.support.lakes.settings import lake_in
from tests.support.repo import ROOT, injected

SOURCE_ID, SLUG = "S1", "shop"

pytestmark = pytest.mark.e2e


class Platform:
    """A lake in a folder with its settings and Dagster's home."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "home").mkdir()
        day = Archive(folder / "data" / paths.raw_root(SOURCE_ID)).day("2026-10-01")
        day.file("a", *(order("m1", "2026-10-01T07:00", n=n) for n in (1, 1)), "no JSON")
        day.file("b", identify("m2", "2026-10-01T07:00"))
        self.lake = lake_in(folder)

    def sync(self, where: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tests.support.faults.killed_sync", SLUG, where],
            env={
                **os.environ,
                "DATALAKE_CONFIG": str(self.folder / "lake.yaml"),
                "DAGSTER_HOME": str(self.folder / "home"),
            },
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )

    @contextmanager
    def _dagster(self) -> Iterator[dg.DagsterInstance]:
        home = str(self.folder / "home")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DAGSTER_HOME", home)
            with dg.DagsterInstance.from_config(home) as instance:
                yield instance

    def statuses(self) -> list[str]:
        """Of Dagster's runs, the newest first."""
        with self._dagster() as instance:
            return [run.status.value for run in instance.get_runs()]

    def evaluate(self) -> None:
        """What the daemon does every minute."""
        with self._dagster() as instance:
            close_dead(self.lake)(dg.build_sensor_context(instance=instance))

    def content(self) -> dict[str, Any]:
        """What is in the lake, and what is left in it."""
        storage, catalog = self.lake.storage, self.lake.catalog
        assert isinstance(storage, LocalStorage)
        tables = catalog.tables(SLUG)
        state = read_state(storage, SOURCE_ID)
        reports = list(newest_reports(self.lake, {SOURCE_ID}))
        return {
            "rows": {
                (t.name, p.values): p.rows
                for t in tables
                for p in catalog.partitions(t.database, t.name)
            },
            "state": state.rows,
            "ids": sum(file.ids for files in state.index.values() for file in files),
            "reported": sum(report.source.row_count for report in reports),
            "left": [
                storage.files("segment-stage"),
                storage.files(paths.open_runs(SOURCE_ID)),
                storage.read(paths.lease(SOURCE_ID)),
            ],
        }


def test_a_sync_whose_process_is_killed_is_closed_and_repeated(tmp_path: Path) -> None:
    """Its storage calls are those of every run; `test_faults` interrupts each of them."""
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    whole = Platform(tmp_path / "whole")
    ended = whole.sync()
    assert ended.returncode == 0, ended.stderr[-2000:]
    platform = Platform(tmp_path / "killed")
    ended = platform.sync("create segment-data/_state/catalog/shop/identify")
    assert ended.returncode == -signal.SIGKILL, ended.stderr[-2000:]
    assert platform.statuses() == ["STARTED"]  # Dagster by itself does not notice
    platform.evaluate()
    assert platform.statuses() == ["FAILURE"]
    assert platform.sync().returncode == 0
    assert platform.statuses() == ["SUCCESS", "FAILURE"]
    assert platform.content() == whole.content()
    injected["Dagster's process killed"] += 1
