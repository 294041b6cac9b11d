"""A large set of ids is a set of ids."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eventlake.rules.suppression import IdSet

TEXTS = st.text(max_size=3)


@given(st.sets(TEXTS, max_size=40), st.lists(TEXTS, max_size=40))
def test_it_has_its_ids_and_no_others(ids: set[str], others: list[str]) -> None:
    made = IdSet(pa.array(sorted(ids), pa.string()))
    assert len(made) == len(ids)
    assert all(id in made for id in ids)
    assert [id in made for id in others] == [id in ids for id in others]


def test_many_ids_are_told_from_as_many_others() -> None:
    made = IdSet(pa.array(sorted(f"u{n}" for n in range(0, 20_000, 2))))
    assert sum(f"u{n}" in made for n in range(20_000)) == 10_000
