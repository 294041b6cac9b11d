"""Compares the rows of one message id with its events in the archive.

The rule for duplicates does not determine which of several copies is in the lake: the first one
loaded is kept. The audit requires that every row has its event in the archive, that no two rows of
an id are within the window, and that no event is farther than the window from all rows of its id.
"""

from collections import Counter
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple


class Demand(IntEnum):
    """Whether an event has to be in the lake, by the file it is in."""

    REQUIRED = 0
    BEYOND = 1  # a limit of tables or columns rejects it
    WAITING = 2  # its file is not loaded yet, although a replay may have loaded the event


class Raw(NamedTuple):
    """An event of the archive."""

    received: int
    table: str
    demand: Demand


class Row(NamedTuple):
    """A row of the lake; rows around the audited range are only for comparison.

    A row in the wrong partition has no table, so that no event matches it.
    """

    received: int
    table: str | None
    judged: bool = True


class RawVerdict(IntEnum):
    LOADED = 0
    DUPLICATE = 1
    REJECTED = 2
    WAITING = 3
    MISSING = 4


class RowVerdict(IntEnum):
    FINE = 0
    DOUBLED = 1
    UNEXPECTED = 2
    NOT_JUDGED = 3


def judge(
    raw: Sequence[Raw], rows: Sequence[Row], window: int
) -> tuple[list[RawVerdict], list[RowVerdict]]:
    """A verdict on every event and on every row of one id; both in order of time."""
    in_archive = {(event.received, event.table) for event in raw}
    kept = [row.received for row in rows if not row.judged]
    verdicts = dict.fromkeys(range(len(rows)), RowVerdict.NOT_JUDGED)
    judged = [place for place, row in enumerate(rows) if row.judged]
    # Rows with an event in the archive come first: of two rows, the other one is doubled.
    sent = {place for place in judged if rows[place][:2] in in_archive}
    for place in sorted(sent):
        verdicts[place] = RowVerdict.FINE
        if _near(rows[place].received, kept, window):
            verdicts[place] = RowVerdict.DOUBLED
        else:
            kept.append(rows[place].received)
    unsent: list[int] = []
    for place in judged:
        if place not in sent:
            near = _near(rows[place].received, [*kept, *unsent], window)
            verdicts[place] = RowVerdict.DOUBLED if near else RowVerdict.UNEXPECTED
            unsent.append(rows[place].received)
    fine = [row for place, row in enumerate(rows) if verdicts[place] is RowVerdict.FINE]
    return _judge_raw(raw, fine, kept, window), [verdicts[place] for place in range(len(rows))]


def _judge_raw(
    raw: Sequence[Raw], fine: Sequence[Row], kept: list[int], window: int
) -> list[RawVerdict]:
    """Each correct row accounts for one event, preferably a required one."""
    verdicts: dict[int, RawVerdict] = {}
    free = Counter((row.received, row.table) for row in fine)
    for place in sorted(range(len(raw)), key=lambda place: raw[place].demand):
        event = raw[place]
        if free[event.received, event.table]:
            free[event.received, event.table] -= 1
            verdicts[place] = RawVerdict.LOADED
    for place, event in enumerate(raw):
        if place in verdicts:
            continue
        if event.demand == Demand.WAITING:
            verdicts[place] = RawVerdict.WAITING
        elif event.demand == Demand.BEYOND:
            verdicts[place] = RawVerdict.REJECTED
        elif _near(event.received, kept, window):
            verdicts[place] = RawVerdict.DUPLICATE
        else:
            verdicts[place] = RawVerdict.MISSING
            kept.append(event.received)  # of several copies, one is missing
    return [verdicts[place] for place in range(len(raw))]


def _near(moment: int, others: Sequence[int], window: int) -> bool:
    return any(abs(moment - other) <= window for other in others)
