"""A lake of its own for each test, and the clean-up of it at any time."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from eventlake.runs.clean_up import CleanUp, clean_up
from tests.support.lakes.runs import Runs

CleanAfter = Callable[[float], CleanUp]


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


@pytest.fixture
def clean_after(runs: Runs) -> CleanAfter:
    """Clean up as if so many hours had passed."""

    def clean(hours: float) -> CleanUp:
        later = datetime.now(UTC) + timedelta(hours=hours)
        return clean_up(runs.storage, runs.catalog, runs.source, runs.state(), later)

    return clean


@pytest.fixture(autouse=True)
def _no_power_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
