""""""

from hypothesis import given
from hypothesis import strategies as st

from eventlake.runs.unit import evenly


def test_the_heaviest_come_first_and_go_to_the_lightest() -> None:
    assert evenly([1, 7, 5, 4, 2], lambda weight: weight, 2) == [[7, 2, 1], [5, 4]]


def test_there_are_no_empty_shares() -> None:
    assert evenly([3], lambda weight: weight, 4) == [[3]]
    assert evenly([], lambda weight: weight, 4) == []


@given(st.lists(st.integers(0, 100)), st.integers(1, 8))
def test_everything_is_in_one_share_and_none_is_heavier_by_more_than_one_thing(
    weights: list[int], count: int
) -> None:
    shares = evenly(weights, lambda weight: weight, count)
    assert sorted(weight for share in shares for weight in share) == sorted(weights)
    loads = [sum(share) for share in shares] + [0] * (count - len(shares))
    assert max(loads) - min(loads) <= max(weights, default=0)
