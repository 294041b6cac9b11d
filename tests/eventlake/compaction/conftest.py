"""A lake of its own for each test, on a disk that nobody waits for."""

import os
from pathlib import Path

import pytest

from tests.support.lakes.runs import Runs


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


@pytest.fixture(autouse=True)
def _no_power_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
