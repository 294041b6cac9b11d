"""Spark's driver and its workers killed in the middle of a sync: the next run makes it good."""

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from eventlake.runs import placement
from eventlake.storage import LocalStorage
from spark_resources.engines.local import LocalEngine
from tests.support.faults.cases import REPLAYS, SYNCS
from tests.support.faults.failing_storage import Faults
from tests.support.faults.faults import Case, break_off, make_good, snapshot, sweep
from tests.support.faults.places import Folders
from tests.support.injected import injected
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.runs import Runs
from tests.support.repo import ROOT

pytestmark = pytest.mark.spark
STEPS = {
    "staging is known": "update segment-data/_state/sources/S1/lease.json",
    "the commit": "create segment-data/_state/sources/S1/manifests",
    "a file is put in its place": "place segment-data/data",
    "the record log is put in its place": "place sync_tracking_datasets",
    "the catalog is told": "update segment-data/_state/catalog",
    "the ledger grows": "update segment-data/_state/sources/S1/ledger",
    "the report is written": "write segment-data/reports",
    "staging goes": "clear segment-stage",
    "the state is written": "update segment-data/_state/sources/S1/state.json",
}


class Undisturbed:
    """A case as it is before its step, and as it ends if nothing happens."""

    def __init__(self, folder: Path, case: Case) -> None:
        self.place, self.case = Folders(folder), case
        self.base = self.place.new()
        case.before(self.base)
        whole = break_off(self.place, self.place.copy(self.base, "whole"), case.step, Faults())
        make_good(case, whole)
        self.wanted = snapshot(whole)

    def copy(self, name: str) -> Path:
        return self.place.copy(self.base, name).root

    def check(self, root: Path, point: str) -> None:
        """One more run, and all is well."""
        runs = Runs(root, first_run=11)
        make_good(self.case, runs)
        sweep(runs, point)
        assert snapshot(runs) == self.wanted, point
        shutil.rmtree(root)


def run_driver(root: Path, case: Case, where: str = "") -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "tests.support.faults.killed_driver",
        str(root),
        case.name,
        where,
    ]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def kill_driver(lake: Undisturbed, where: str) -> None:
    root = lake.copy("killed")
    ended = run_driver(root, lake.case, where)
    assert ended.returncode == -signal.SIGKILL, ended.stderr[-2000:]
    lake.check(root, where)
    injected["driver on Spark killed"] += 1


def test_the_driver_is_killed_when_a_file_is_put_in_its_place(tmp_path: Path) -> None:
    kill_driver(Undisturbed(tmp_path, SYNCS[1]), STEPS["a file is put in its place"])


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("step", STEPS)
def test_the_driver_is_killed_at(tmp_path: Path, step: str) -> None:
    kill_driver(Undisturbed(tmp_path, SYNCS[1]), STEPS[step])


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("case", [SYNCS[1], REPLAYS[0]], ids=lambda case: case.name)
def test_the_driver_is_killed_at_every_change_it_makes(tmp_path: Path, case: Case) -> None:
    lake = Undisturbed(tmp_path, case)
    told = run_driver(lake.copy("told"), case)
    changes = told.stdout.splitlines()
    assert len(changes) >= 15, told.stderr[-2000:]
    for at in range(len(changes)):
        kill_driver(lake, str(at))


@dataclass(frozen=True)
class KillsAWorker(LocalStorage):
    """The first worker of Spark that makes a certain call does not survive it."""

    call: str = ""
    driver: int = 0

    def _perhaps(self, call: str) -> None:
        if call != self.call or os.getpid() == self.driver:
            return
        try:
            os.close(os.open(f"{self.uri}/killed", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    def open_stream(self, path: str) -> Any:
        self._perhaps("read a raw file")
        return super().open_stream(path)

    def put_own(self, path: str, data: bytes | memoryview) -> None:
        self._perhaps("write a file")
        super().put_own(path, data)


@pytest.mark.parametrize("call", ["read a raw file", "write a file"])
def test_a_worker_is_killed_when_it_is_to(tmp_path: Path, engine: LocalEngine, call: str) -> None:
    lake = Undisturbed(tmp_path, SYNCS[1])
    root = lake.copy("killed")
    runs = Runs(root, first_run=10, store=KillsAWorker(str(root), call, os.getpid()))
    runs.flow = engine.dataflow
    with pytest.raises(Py4JJavaError, match="Python worker exited unexpectedly"):
        lake.case.step(runs)
    assert (root / "killed").exists()
    [line] = Runs(root).reports()["R10"]
    assert line["status"] == "failed"
    lake.check(root, call)
    injected["worker of Spark killed"] += 1


@pytest.fixture(autouse=True)
def _small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "SPLIT_BYTES", 220)
    monkeypatch.setattr(InProcess, "slots", 2)
