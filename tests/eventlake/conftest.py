"""A lake of its own for each test, on a disk that nothing waits for.

Hypothesis runs without deadlines: the first example pays for imports, and machines are busy.
"""

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings

from eventlake.runs import placement
from eventlake.runs.clean_up import CleanUp, clean_up
from eventlake.storage import Storage
from tests.support.lakes.glue_runs import GlueRuns
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.retyping import load_three_days
from tests.support.lakes.runs import Runs
from tests.support.servers.aws import AwsServer
from tests.support.servers.glue import strict_glue

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


@pytest.fixture
def anywhere(storage: Storage, tmp_path: Path) -> Runs:
    """A lake in a folder, and one in a bucket."""
    return Runs(tmp_path, store=storage)


@pytest.fixture(params=["embedded", "glue"])
def in_each_catalog(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Runs:
    if request.param == "embedded":
        return Runs(tmp_path)
    aws: AwsServer = request.getfixturevalue("aws")
    strict_glue(aws, monkeypatch)
    return GlueRuns(tmp_path, aws)


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


@pytest.fixture
def clean_after(runs: Runs) -> Callable[[float], CleanUp]:
    """Clean up as if so many hours had passed."""

    def clean(hours: float) -> CleanUp:
        later = datetime.now(UTC) + timedelta(hours=hours)
        return clean_up(runs.storage, runs.catalog, runs.source, runs.state(), later)

    return clean
