"""Wherever a run breaks off, one more undisturbed run ends in the lake of an undisturbed one."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from lake.work import placing
from lake.work.dataflow import InProcess
from tests.lake.failing_storage import Fault
from tests.lake.fault_cases import CASES
from tests.lake.fault_places import Folders
from tests.lake.faults import Case, hold


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_call_of_the_store_fails_once(root: Path, case: Case, fault: Fault) -> None:
    assert hold(Folders(root), case, fault) > 3


@pytest.fixture
def root() -> Iterator[Path]:
    """In memory where that is possible: thousands of small folders are made and removed."""
    memory = "/dev/shm"
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture(autouse=True)
def _small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "SPLIT_BYTES", 2500)
    monkeypatch.setattr(InProcess, "slots", 2)
