"""A bounded look each day, and in time at everything."""

from hypothesis import given
from hypothesis import strategies as st

from eventlake.checks.view import PARTITIONS_AT_MOST, sample, share_of, slices


@given(st.integers(0, 3_000), st.integers(2, 500), st.integers(0, 800_000))
def test_the_newest_always_and_all_the_others_in_turn(items: int, share: int, turn: int) -> None:
    everything = range(items)
    newest = set(everything[-(share // 2) :])
    seen: set[int] = set()
    for one in range(turn, turn + slices(items, share)):
        found = sample(everything, share, one)
        assert len(found) <= share
        assert found == sorted(set(found))
        assert newest <= set(found)
        seen |= set(found)
    assert seen == set(everything)


@given(st.integers(0, PARTITIONS_AT_MOST // 4))
def test_many_tables_share_what_is_looked_into(tables: int) -> None:
    assert share_of(tables) >= 4
    assert share_of(tables) * tables <= PARTITIONS_AT_MOST
