"""Which events are duplicates: the fast rule over all ids against a plain one, event by event."""

from dataclasses import dataclass
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlake.columnar.id_hashes import hash_id, words
from eventlake.load.seen import positions
from eventlake.rules.duplicates import Events, find_twins, twins_of_one_id

WINDOW = 7


@pytest.mark.parametrize(
    ("received", "in_lake", "duplicate"),
    [
        ([0], [], [False]),
        ([0, 0], [], [False, True]),
        ([0, 7], [], [False, True]),
        ([0, 8], [], [False, False]),
        # Only what is kept counts: 6 is a duplicate of 0, and 10 would have been one of 6.
        ([0, 6, 10], [], [False, True, False]),
        ([10], [3], [True]),
        ([10], [2], [False]),
        ([10], [17], [True]),  # what the lake has is kept, though it came later
        ([10], [18], [False]),
        ([10, 20], [15], [True, True]),
        ([0, 7, 14], [30], [False, True, False]),
    ],
)
def test_at_most_a_window_apart_is_a_duplicate(
    received: list[int], in_lake: list[int], duplicate: list[bool]
) -> None:
    twins = twins_of_one_id(received, in_lake, WINDOW)
    assert [twin is not None for twin in twins] == duplicate


@pytest.mark.parametrize(
    ("received", "in_lake", "twins"),
    [
        ([0, 6, 10, 12], [], [None, 0, None, 2]),
        ([10, 11], [3, 17], [0, 1]),  # the lake's are counted first
        ([0, 1], [30], [None, 1]),
    ],
)
def test_a_duplicate_knows_whose_it_is(
    received: list[int], in_lake: list[int], twins: list[int | None]
) -> None:
    assert twins_of_one_id(received, in_lake, WINDOW) == twins


@dataclass(frozen=True)
class Event:
    id: str
    received: int
    file: int
    line: int


@dataclass(frozen=True)
class InLake:
    id: str
    received: int


def plainly(events: list[Event], lake: list[InLake]) -> set[tuple[int, int]]:
    """The places of the duplicates, by the words of the rule."""
    kept: list[Event | InLake] = list(lake)
    places = set()
    for event in sorted(events, key=lambda e: (e.received, e.file, e.line)):
        near = [k for k in kept if k.id == event.id and abs(k.received - event.received) <= WINDOW]
        if near:
            places.add((event.file, event.line))
        else:
            kept.append(event)
    return places


def fast(events: list[Event], lake: list[InLake], hashes: dict[str, bytes]) -> set[tuple[int, int]]:
    def ids_of(found: list[Event] | list[InLake]) -> np.ndarray:
        return words(pa.array([hashes[one.id] for one in found], pa.binary(16)))

    where = positions(
        np.array([e.file for e in events], dtype=np.int32),
        np.array([e.line for e in events], dtype=np.int32),
    )
    received = np.array([e.received for e in events], dtype=np.int64)
    lake_received = np.array([e.received for e in lake], dtype=np.int64)
    twins = find_twins(
        Events(ids_of(events), received, where), Events(ids_of(lake), lake_received), WINDOW
    )
    everyone = [*events, *lake]
    for event, twin in zip(events, twins, strict=True):
        assert twin < 0 or everyone[twin].id == event.id
        assert twin < 0 or abs(everyone[twin].received - event.received) <= WINDOW
    return {(e.file, e.line) for e, twin in zip(events, twins, strict=True) if twin >= 0}


NAMES = ["a", "b", "c", "d"]
# The first two differ only in the second half of the hash, the last two only in the first.
ALIKE = dict(
    zip(
        NAMES,
        (bytes(15) + b"\1", bytes(15) + b"\2", b"\xff" * 8 + b"\3" * 8, b"\xfe" * 8 + b"\3" * 8),
        strict=True,
    )
)
HASHED = {name: hash_id(name) for name in NAMES}
TIMES = st.integers(-10, 30)
EVENTS = st.lists(
    st.builds(Event, st.sampled_from(NAMES), TIMES, st.integers(0, 2), st.integers(1, 40)),
    max_size=12,
    unique_by=lambda event: (event.file, event.line),
)
LAKES = st.lists(st.builds(InLake, st.sampled_from(NAMES), TIMES), max_size=6)


@given(EVENTS, LAKES, st.sampled_from([ALIKE, HASHED]))
@example([], [InLake("a", 0)], HASHED)
@example([Event("a", 0, 1, 1), Event("a", 0, 0, 2), Event("a", 0, 0, 1)], [], ALIKE)
@example([Event("a", 0, 0, 1)], [InLake("b", 0)], ALIKE)
def test_all_ids_at_once_are_judged_as_each_of_them(
    events: list[Event], lake: list[InLake], hashes: dict[str, bytes]
) -> None:
    assert fast(events, lake, hashes) == plainly(events, lake)


@given(EVENTS, LAKES, st.randoms(use_true_random=False))
def test_the_order_in_which_events_are_looked_at_does_not_matter(
    events: list[Event], lake: list[InLake], chance: Random
) -> None:
    shuffled = chance.sample(events, len(events))
    assert fast(shuffled, lake[::-1], HASHED) == fast(events, lake, HASHED)
