"""The verdicts on all events and rows of a bucket."""

from collections.abc import Iterator

import numpy as np

from eventlake.audit.rule import Raw, RawVerdict, Row, RowVerdict, judge


def compare(raw: np.ndarray, rows: np.ndarray, window: int) -> tuple[np.ndarray, np.ndarray]:
    """A verdict on each event and on each row.

    The rule itself is asked only about ids that are not simply there once on both sides: few,
    where all is well.
    """
    raw_verdicts = np.full(len(raw), RawVerdict.LOADED, dtype=np.uint8)
    row_verdicts = np.full(len(rows), RowVerdict.FINE, dtype=np.uint8)
    row_verdicts[~rows["judged"]] = RowVerdict.NOT_JUDGED
    for in_raw, in_rows in _suspects(raw, rows):
        in_raw = in_raw[np.lexsort([raw[in_raw][key] for key in ("line", "file", "received")])]
        in_rows = in_rows[np.argsort(rows["received"][in_rows], kind="stable")]
        events = [Raw(*one) for one in raw[in_raw][["received", "table", "demand"]].tolist()]
        found = [Row(*one) for one in rows[in_rows][["received", "table", "judged"]].tolist()]
        raw_verdicts[in_raw], row_verdicts[in_rows] = judge(events, found, window)
    return raw_verdicts, row_verdicts


def _suspects(raw: np.ndarray, rows: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Of each id that the rule has to look at, the places of its events and of its rows."""
    if not len(raw) + len(rows):
        return
    hi, lo = (np.concatenate([raw[half], rows[half]]) for half in ("hi", "lo"))
    order = np.lexsort((lo, hi))
    new = np.append(True, (np.diff(hi[order]) != 0) | (np.diff(lo[order]) != 0))
    starts = np.flatnonzero(new)
    ends = np.append(starts[1:], len(order))
    ids = np.empty(len(order), dtype=np.int64)
    ids[order] = np.cumsum(new) - 1
    simple = _simple(raw, rows, ids[: len(raw)], ids[len(raw) :], len(starts))
    for number in np.flatnonzero(~simple):
        members = order[starts[number] : ends[number]]
        yield members[members < len(raw)], members[members >= len(raw)] - len(raw)


def _simple(
    raw: np.ndarray, rows: np.ndarray, raw_ids: np.ndarray, row_ids: np.ndarray, count: int
) -> np.ndarray:
    """Which ids have one event and one row that agree, or nothing but rows around the range."""
    events = np.bincount(raw_ids, minlength=count)
    judged = np.bincount(row_ids[rows["judged"]], minlength=count)
    once = (events == 1) & (judged == 1) & (np.bincount(row_ids, minlength=count) == 1)
    event, row = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    event[raw_ids], row[row_ids] = np.arange(len(raw)), np.arange(len(rows))
    at = np.flatnonzero(once)
    for name in ("received", "table"):
        once[at] &= raw[name][event[at]] == rows[name][row[at]]
    simple: np.ndarray = once | ((events == 0) & (judged == 0))
    return simple
