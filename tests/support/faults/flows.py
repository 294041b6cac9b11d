"""Data flows that fail, count or are interrupted at one call."""

from collections.abc import Callable, Sequence
from datetime import date, timedelta

import pytest

from eventlake.load.blobs import Shares
from eventlake.load.seen import Seen
from eventlake.load.stage_job import RawFile, StageJob
from eventlake.load.write import LoadedFile, LoadJob
from eventlake.rules import paths
from tests.support.lakes.archive import track
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.runs import SOURCE_ID, Runs


def overtaken(runs: Runs, other: Callable[[], object], unit: int = 1) -> type[InProcess]:
    """A data flow in which, during the given unit, another run comes and goes.

    The other one believes that the lease has expired.
    """

    class Overtaken(InProcess):
        loads = 0

        def load(self, job: LoadJob, shares: Shares) -> list[LoadedFile]:
            Overtaken.loads += 1
            written = super().load(job, shares)
            if Overtaken.loads == unit:
                runs.flow = InProcess
                runs.storage.delete(paths.lease(SOURCE_ID))
                other()
            return written

    return Overtaken


def warned_of_conflict(runs: Runs) -> bool:
    return any("Another run committed manifest" in warning for warning in runs.warnings)


FIRST = date(2026, 9, 1)


class Counting(InProcess):
    """Counts the rows it stages; cancelled in the middle of a unit, if told at which."""

    rows = 0
    units = 0
    cancelled_at: int | None = None

    def stage(self, job: StageJob, tasks: Sequence[Sequence[RawFile]]) -> list[Seen]:
        found = super().stage(job, tasks)
        Counting.rows += sum(one.rows_in for one in found)
        Counting.units += 1
        return found

    def load(self, job: LoadJob, shares: Shares) -> list[LoadedFile]:
        written = super().load(job, shares)
        if Counting.units == Counting.cancelled_at:
            raise KeyboardInterrupt
        return written


def load_days(runs: Runs, days: int) -> tuple[str, str]:
    """So many days in the lake, with copies of rows across them; the range that holds them."""
    for number in range(days):
        day, morrow = (f"{FIRST + timedelta(days=number + n)}" for n in (0, 1))
        runs.archive.day(day).file(
            "a",
            *(track("Order", f"{day}-{n}", f"{day}T07:0{n}", n=n) for n in range(6)),
            track("Order", f"{number // 3}", f"{day}T07:30"),
            track("Order", f"late {day}", f"{morrow}T07:00"),
        )
    runs.sync()
    runs.flow = Counting
    return f"{FIRST}", f"{FIRST + timedelta(days=days)}"


def cancel(runs: Runs, at_unit: int, *span: str) -> None:
    """Launch the replay and cancel it in the middle of a unit (counted over all launches)."""
    Counting.cancelled_at = at_unit
    with pytest.raises(KeyboardInterrupt):
        runs.replay(*span)
    Counting.cancelled_at = None
