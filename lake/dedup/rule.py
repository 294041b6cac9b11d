"""The rule of duplicates (spec 7): same id, received at most a window apart; the earliest is kept.

What is in the lake already always stays, and only what is kept counts for comparison.
"""

from collections.abc import Sequence

import numpy as np


def duplicates_of_one_id(
    received: Sequence[int], in_lake: Sequence[int], window: int
) -> list[bool]:
    """Which of the events of one id are duplicates; `received` in order of arrival.

    >>> duplicates_of_one_id([0, 6, 10], [], window=7)
    [False, True, False]
    """
    kept = list(in_lake)
    out: list[bool] = []
    for moment in received:
        duplicate = any(abs(moment - other) <= window for other in kept)
        out.append(duplicate)
        if not duplicate:
            kept.append(moment)
    return out


def find_duplicates(
    ids: np.ndarray,
    received: np.ndarray,
    files: np.ndarray,
    lines: np.ndarray,
    lake_ids: np.ndarray,
    lake_received: np.ndarray,
    window: int,
) -> np.ndarray:
    """A mask of the events that are duplicates of each other or of what the lake has.

    Ids come as `words`. The rule itself looks only at ids that occur twice: few.
    """
    duplicate = np.zeros(len(ids), dtype=bool)
    if not len(ids):
        return duplicate
    order = np.lexsort((lines, files, received, ids[:, 1], ids[:, 0]))
    ordered = ids[order]
    starts = np.flatnonzero(np.r_[True, (ordered[1:] != ordered[:-1]).any(axis=1)])
    ends = np.r_[starts[1:], len(ids)]
    known = _LakeTimes(lake_ids, lake_received, ordered[starts])
    suspects = (ends - starts > 1) | known.present
    for group in np.flatnonzero(suspects):
        rows = order[starts[group] : ends[group]]
        in_lake = known.received(int(group))
        duplicate[rows] = duplicates_of_one_id(received[rows].tolist(), in_lake, window)
    return duplicate


class _LakeTimes:
    """For each of some ids: when the lake's events of that id were received."""

    def __init__(self, lake_ids: np.ndarray, lake_received: np.ndarray, asked: np.ndarray) -> None:
        order = np.lexsort((lake_ids[:, 1], lake_ids[:, 0]))
        self._ids, self._received, self._asked = lake_ids[order], lake_received[order], asked
        self._first = np.searchsorted(self._ids[:, 0], asked[:, 0], side="left")
        self._last = np.searchsorted(self._ids[:, 0], asked[:, 0], side="right")
        self.present = self._last > self._first

    def received(self, group: int) -> list[int]:
        """Two ids may share the first half of their hash: the second half decides."""
        span = slice(self._first[group], self._last[group])
        same = self._ids[span, 1] == self._asked[group, 1]
        found: list[int] = self._received[span][same].tolist()
        return found
