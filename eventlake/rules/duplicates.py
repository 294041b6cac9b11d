"""The rule of duplicates (spec 7): same id, received at most a window apart; the earliest is kept.

What is in the lake already always stays, and only what is kept counts for comparison.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


def twins_of_one_id(
    received: Sequence[int], in_lake: Sequence[int], window: int
) -> list[int | None]:
    """For each event of one id, in order of arrival, the kept one it is a duplicate of.

    Kept ones are counted on from the lake's: with one in the lake, 1 is the first of `received`.

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
    """Events by id (as `words`) and time; of those that come in, also where they lie."""

    ids: np.ndarray
    received: np.ndarray
    places: np.ndarray | None = None

    def order(self) -> np.ndarray:
        """By id, and those of one id as they arrived: by time, then as they lie in the archive."""
        places = self.places if self.places is not None else np.arange(len(self.ids))
        return np.lexsort((places, self.received, self.ids[:, 1], self.ids[:, 0]))


NOTHING = Events(np.empty((0, 2), dtype=np.uint64), np.empty(0, dtype=np.int64))


def find_twins(events: Events, in_lake: Events, window: int) -> np.ndarray:
    """For each event, -1 if it is kept; else the kept event whose duplicate it is.

    That is a row of `events` or, counted on from their number, one of `in_lake`. The rule itself
    looks only at ids that occur twice: few.
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


class _LakeEvents:
    """For each of some ids, which are in order: the lake's events of that id."""

    def __init__(self, in_lake: Events, asked: np.ndarray) -> None:
        # A lake has a hundred times the ids of a sync, and hardly one of them is asked for: they
        # are looked up among those asked, and only what is found is put in order.
        halves = in_lake.ids[:, 0]
        at = np.searchsorted(asked[:, 0], halves)
        at[at == len(asked)] = 0
        found = np.flatnonzero(asked[at, 0] == halves)
        ids = in_lake.ids[found]
        self._order = found[np.lexsort((ids[:, 1], ids[:, 0]))]
        self._ids, self._asked = in_lake.ids[self._order], asked
        self._first = np.searchsorted(self._ids[:, 0], asked[:, 0], side="left")
        self._last = np.searchsorted(self._ids[:, 0], asked[:, 0], side="right")
        self.present = self._last > self._first

    def rows(self, group: int) -> np.ndarray:
        """Two ids may share the first half of their hash: the second half decides."""
        span = slice(self._first[group], self._last[group])
        same: np.ndarray = self._ids[span, 1] == self._asked[group, 1]
        rows: np.ndarray = self._order[span][same]
        return rows
