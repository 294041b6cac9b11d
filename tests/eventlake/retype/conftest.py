"""A lake of its own for each test."""

from pathlib import Path

import pytest

from tests.support.lakes.runs import Runs


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)
