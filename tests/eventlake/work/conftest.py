"""A lake of its own for each test, on a disk that nobody waits for."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from eventlake.runs import placement
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.retyping import load_three_days
from tests.support.lakes.runs import Runs


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


@pytest.fixture(autouse=True)
def _no_power_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def in_memory() -> Iterator[Path]:
    """For thousands of small folders that are made and removed; elsewhere if there is no such."""
    memory = "/dev/shm"
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that small lakes have partitions of several files."""
    monkeypatch.setattr(placement, "SPLIT_BYTES", 220)
    monkeypatch.setattr(InProcess, "slots", 2)


@pytest.fixture
def three_days(runs: Runs) -> Runs:
    load_three_days(runs)
    return runs
