"""Many ids at once get the verdicts that each would get alone."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.audit.compare import compare
from eventlake.audit.rows import RAW, ROWS, Spill, bucket_bits
from eventlake.audit.rule import Raw, Row, judge

WINDOW = 7
# Two ids that agree in one half of their hash, in the other, and in none.
IDS = st.sampled_from([(1, 1), (1, 2), (2, 1), (2**64 - 1, 2**63), (0, 0)])
EVENTS = st.lists(
    st.tuples(IDS, st.integers(-9, 9), st.integers(0, 2), st.integers(0, 1), st.integers(0, 2)),
    max_size=12,
)
FOUND = st.lists(st.tuples(IDS, st.integers(-9, 9), st.integers(0, 2), st.booleans()), max_size=12)


@given(EVENTS, FOUND)
def test_each_id_is_judged_by_itself(
    events: list[tuple[tuple[int, int], int, int, int, int]],
    found: list[tuple[tuple[int, int], int, int, bool]],
) -> None:
    raw = np.array(
        [
            (*id, at, table, file, n, demand)
            for n, (id, at, table, file, demand) in enumerate(events)
        ],
        dtype=RAW,
    )
    rows = np.array(
        [(*id, at, table, 0, n, judged) for n, (id, at, table, judged) in enumerate(found)],
        dtype=ROWS,
    )
    raw_verdicts, row_verdicts = compare(raw, rows, WINDOW)
    for id in {*(event[0] for event in events), *(row[0] for row in found)}:
        mine = [n for n, event in enumerate(events) if event[0] == id]
        mine.sort(key=lambda n: (events[n][1], events[n][3], n))
        here = sorted((n for n, row in enumerate(found) if row[0] == id), key=lambda n: found[n][1])
        expected = judge(
            [Raw(events[n][1], events[n][2], events[n][4]) for n in mine],
            [Row(*found[n][1:]) for n in here],
            WINDOW,
        )
        assert (raw_verdicts[mine].tolist(), row_verdicts[here].tolist()) == expected


@pytest.mark.parametrize(
    ("rows", "bits"),
    [(0, 0), (1, 0), (2_000_000, 0), (2_000_001, 1), (9_000_000, 3), (10**12, 12)],
)
def test_buckets_hold_some_million_rows_each(rows: int, bits: int) -> None:
    assert bucket_bits(rows) == bits


@pytest.mark.parametrize("bits", [0, 1, 4])
@pytest.mark.parametrize("pending", [1, 7, 1000])
def test_what_is_spilled_is_read_back_id_by_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bits: int, pending: int
) -> None:
    monkeypatch.setattr("eventlake.audit.rows.PENDING", pending)
    words = np.random.default_rng(7).integers(0, 2**64, 50, dtype=np.uint64)
    rows = np.zeros(50, dtype=ROWS)
    rows["hi"], rows["row"] = words, np.arange(50)
    spilled = Spill(tmp_path, "rows", ROWS, bits)
    for start in range(0, 50, 10):
        spilled.add(rows[start : start + 10])
    back = [spilled.read(bucket) for bucket in range(2**bits)]
    assert sorted(np.concatenate(back).tolist()) == sorted(rows.tolist())
    for bucket, part in enumerate(back):
        assert all(int(hi) >> (64 - bits) == bucket for hi in part["hi"])
