"""A lake of two days and two tables in which all is well."""

from pathlib import Path

import pytest

from eventlake.audit.audit import Audit, audit
from eventlake.audit.snapshot import FIRST, LAST, Scope
from eventlake.lake import Lake
from eventlake.runs.unit import Window
from tests.support.lakes.archive import identify, order
from tests.support.lakes.runs import Audited, Runs, utc


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    runs = Runs(tmp_path)
    runs.archive.day("2026-10-01").file(
        "a",
        order("m1", "2026-10-01T07:00"),
        order("m2", "2026-10-01T07:30"),
        order("m3", "2026-10-01T08:00"),
        order("m1", "2026-10-01T09:00"),
        identify("i1", "2026-10-01T07:00"),
        "{",
        identify(None, "2026-10-01T07:00"),
    )
    runs.load(
        "2026-10-02", order("m4", "2026-10-02T07:00"), order("m3", "2026-10-02T08:00"), "", name="b"
    )
    return runs


@pytest.fixture
def audited(runs: Runs) -> Audited:
    """Audit the lake as it is now: all of it, or from one time to another."""

    def carry_out(start: str | None = None, end: str | None = None) -> Audit:
        window = Window(utc(start) if start else FIRST, utc(end) if end else LAST)
        return audit(Lake.open(runs.settings), Scope(runs.source, window))

    return carry_out
