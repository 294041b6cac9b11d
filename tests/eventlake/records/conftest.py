"""A lake whose only run had a record of every kind but a suppressed one."""

import os
from pathlib import Path

import pytest

from eventlake.lake import Lake
from tests.support.lakes.archive import Line, identify, page, track
from tests.support.lakes.runs import Runs

FILE = "segment-logs/S1/1790812800000/a.gz"
LINES: tuple[Line, ...] = (
    track("Order", "m1", "2026-10-01T07:00", price=1),
    track("Order", "m1", "2026-10-01T07:30", price=1),
    "{",
    page("p1", "2026-10-01T08:00"),
    identify(None, "2026-10-01T08:00"),
    {"type": "delete", "messageId": "d1", "receivedAt": "2026-10-01T09:00"},
    track("Order", "m2", "2026-10-01T07:10", price=2),
)


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    runs = Runs(tmp_path, skip_events=["page"])
    runs.archive.day("2026-10-01").file("a", *LINES)
    runs.sync()
    return runs


@pytest.fixture
def lake(runs: Runs) -> Lake:
    return Lake.open(runs.settings)


@pytest.fixture(autouse=True)
def _no_power_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
