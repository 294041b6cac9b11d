"""Which partitions of a table are looked into: the newest always, the others in turn."""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

T = TypeVar("T")

PARTITIONS_AT_MOST = 4_000
"""Of all tables of a source in one run: some minutes of work on S3, seconds in a folder."""
_LEAST_SHARE = 4


def share_of(tables: int) -> int:
    """How many partitions of each table are looked into."""
    return max(_LEAST_SHARE, PARTITIONS_AT_MOST // max(tables, 1))


def turn_of(now: datetime) -> int:
    """Which of the slices is due: another every day, whatever the hour of the check."""
    return now.date().toordinal()


def sample(items: Sequence[T], share: int, turn: int) -> list[T]:
    """About `share` of the items, in order: the last half of it, and a slice of those before.

    After as many turns as there are slices, every item has been in one.
    """
    newest = items[-(share // 2) :] if share // 2 else items[len(items) :]
    before = items[: len(items) - len(newest)]
    return [*before[turn % slices(len(items), share) :: slices(len(items), share)], *newest]


def slices(items: int, share: int) -> int:
    """After how many turns all items have been looked at."""
    before = items - min(items, share // 2)
    return max(1, -(-before // (share - share // 2)))
