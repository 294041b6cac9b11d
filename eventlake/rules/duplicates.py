"""The rule for duplicates (spec 7): same id, received within a window; the earliest is kept.

Events in the lake always stay, and events are compared to kept events only.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np


def twins_of_one_id(
    received: Sequence[int], in_lake: Sequence[int], window: int
) -> list[int | None]:
    """For each event of one id, in order of arrival, the kept event that it duplicates.

    Numbers start with the lake's events: with one event in the lake, 1 is the first of `received`.

    >>> twins_of_one_id([0, 6, 10], [], window=7)
    [None, 0, None]
    """
    kept = list(enumerate(in_lake))
    out: list[int | None] = []
    for number, moment in enumerate(received, start=len(in_lake)):
        twin = next((n for n, other in kept if abs(moment - other) <= window), None)
        out.append(twin)
        if twin is None:
            kept.append((number, moment))
    return out


@dataclass(frozen=True, slots=True)
class Events:
    """Events by id (two words) and time; new events also have a raw position."""

    ids: np.ndarray
    received: np.ndarray
    positions: np.ndarray | None = None

    def order(self) -> np.ndarray:
        """Sort by id, then by time and position in the archive."""
        positions = self.positions if self.positions is not None else np.arange(len(self.ids))
        return np.lexsort((positions, self.received, self.ids[:, 1], self.ids[:, 0]))

    def where(self, chosen: np.ndarray) -> "Events":
        return Events(self.ids[chosen], self.received[chosen])

    @classmethod
    def joined(cls, parts: Iterable["Events"]) -> "Events":
        return cls(*map(np.concatenate, zip(*((p.ids, p.received) for p in parts), strict=True)))


NOTHING = Events(np.empty((0, 2), dtype=np.uint64), np.empty(0, dtype=np.int64))


def find_twins(events: Events, in_lake: Events, window: int) -> np.ndarray:
    """For each event, -1 if it is kept, else the kept event that it duplicates.

    That is a row of `events` or, beyond their number, of `in_lake`. The rule is evaluated only
    for the few ids that occur more than once.
    """
    count = len(events.ids)
    twins = np.full(count, -1, dtype=np.int64)
    if not count:
        return twins
    order = events.order()
    ordered = events.ids[order]
    starts = np.flatnonzero(np.r_[True, (ordered[1:] != ordered[:-1]).any(axis=1)])
    ends = np.r_[starts[1:], count]
    known = _LakeEvents(in_lake, ordered[starts])
    for group in np.flatnonzero((ends - starts > 1) | known.present):
        rows = order[starts[group] : ends[group]]
        lake_rows = known.rows(int(group))
        both = np.r_[lake_rows + count, rows]
        found = twins_of_one_id(
            events.received[rows].tolist(), in_lake.received[lake_rows].tolist(), window
        )
        twins[rows] = [-1 if twin is None else both[twin] for twin in found]
    return twins


def have_twins(events: Events, others: Events, window: int) -> np.ndarray:
    """Of which events there is another one with the same id within the window."""
    # Usually it is the same event, so this decides all but a few.
    found: np.ndarray = np.isin(_mixed(events), _mixed(others))
    doubtful = np.flatnonzero(~found)
    doubtful = doubtful[np.isin(events.ids[doubtful, 0], others.ids[:, 0])]
    if not len(doubtful):
        return found
    ids, numbers = np.unique(events.ids[doubtful], axis=0, return_inverse=True)
    known = _LakeEvents(others, ids)
    for row, number in zip(doubtful.tolist(), numbers.ravel().tolist(), strict=True):
        apart = others.received[known.rows(number)] - events.received[row]
        found[row] = bool((np.abs(apart) <= window).any())
    return found


def _mixed(events: Events) -> np.ndarray:
    """A hash of id and time."""
    times: np.ndarray = events.received.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed: np.ndarray = events.ids[:, 0] ^ times
    return mixed


class _LakeEvents:
    """The lake's events of each of some sorted ids."""

    def __init__(self, in_lake: Events, wanted: np.ndarray) -> None:
        # A lake has a hundred times the ids of a sync, and hardly any match: look them up
        # among the wanted ids, and sort only the matches.
        halves = in_lake.ids[:, 0]
        at = np.searchsorted(wanted[:, 0], halves)
        at[at == len(wanted)] = 0
        found = np.flatnonzero(wanted[at, 0] == halves)
        ids = in_lake.ids[found]
        self._order = found[np.lexsort((ids[:, 1], ids[:, 0]))]
        self._ids, self._wanted = in_lake.ids[self._order], wanted
        self._first = np.searchsorted(self._ids[:, 0], wanted[:, 0], side="left")
        self._last = np.searchsorted(self._ids[:, 0], wanted[:, 0], side="right")
        self.present = self._last > self._first

    def rows(self, group: int) -> np.ndarray:
        """The rows of one id; ids may share the first half of their hash."""
        span = slice(self._first[group], self._last[group])
        same: np.ndarray = self._ids[span, 1] == self._wanted[group, 1]
        rows: np.ndarray = self._order[span][same]
        return rows
