"""Spark's driver and its workers killed in the middle of a sync: the next run makes it good."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from eventlake.runs import placement
from spark_resources.engines.local import LocalEngine
from tests.support.faults.cases import SYNCS
from tests.support.faults.failing_storage import Deadly, Faults
from tests.support.faults.faults import Case, break_off, make_good, snapshot, sweep
from tests.support.faults.places import Folders
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.runs import Runs
from tests.support.repo import ROOT, injected

pytestmark = pytest.mark.spark


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


def run_driver(root: Path, case: Case, where: str) -> subprocess.CompletedProcess[str]:
    module = "tests.support.faults.killed_driver"
    command = [sys.executable, "-m", module, str(root), case.name, where]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_driver_is_killed_when_a_file_is_moved_into_place(tmp_path: Path) -> None:
    """Its storage calls are those of every run; `test_faults` interrupts each of them."""
    lake, where = Undisturbed(tmp_path, SYNCS[1]), "place segment-data/data"
    root = lake.copy("killed")
    ended = run_driver(root, lake.case, where)
    assert ended.returncode == -signal.SIGKILL, ended.stderr[-2000:]
    lake.check(root, where)
    injected["driver on Spark killed"] += 1


@pytest.mark.parametrize("call", ["reading", "writing"])
def test_a_worker_is_killed_when(tmp_path: Path, engine: LocalEngine, call: str) -> None:
    lake = Undisturbed(tmp_path, SYNCS[1])
    root = lake.copy("killed")
    runs = Runs(
        root, first_run=10, store=Deadly(str(root), os.getpid(), (call,), whole_machine=False)
    )
    runs.flow = engine.dataflow
    with pytest.raises(Py4JJavaError, match="Python worker exited unexpectedly"):
        lake.case.step(runs)
    assert (root / call).exists()
    [line] = Runs(root).reports()["R10"]
    assert line["status"] == "failed"
    lake.check(root, call)
    injected["worker of Spark killed"] += 1


@pytest.fixture(autouse=True)
def _small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "SPLIT_BYTES", 220)
    monkeypatch.setattr(InProcess, "slots", 2)
