"""How many tasks share the ids of a unit: by what is new, and by what the lake has already."""

import pytest

from eventlake.runs.dedup import groups_for


@pytest.mark.parametrize(
    ("staged", "looked_back", "groups"),
    [
        (100_000, 0, 1),
        (1_000_000, 0, 4),
        (100_000_000, 0, 16),
        (1_000, 8_000_000, 2),  # a few late events of a source that has many
        (1_000, 10_000_000_000, 16),
        (1_000_000, 8_000_000, 4),
    ],
)
def test_no_task_gets_too_many(staged: int, looked_back: int, groups: int) -> None:
    assert groups_for(staged, looked_back) == groups
