"""A lake whose only run had a record of every kind but a suppressed one."""

from pathlib import Path

import pytest

from eventlake.lake import Lake
from tests.support.lakes.recorded import LINES
from tests.support.lakes.runs import Runs


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    runs = Runs(tmp_path, skip_events=["page"])
    runs.load("2026-10-01", *LINES)
    return runs


@pytest.fixture
def lake(runs: Runs) -> Lake:
    return Lake.open(runs.settings)
