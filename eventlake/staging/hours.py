"""Hours of `receivedAt` as the ledger and the partitions spell them; asked for every event."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from eventlake.partitions import DatePartition

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR_US = 3_600_000_000


def hour_of(received_us: int) -> str:
    """`2026-10-01T07`"""
    return _hour(received_us // HOUR_US)


def partition_of(layout: DatePartition, received_us: int) -> str:
    """`day=2026-10-01/hr=07`"""
    return _partition(layout, received_us // HOUR_US)


@lru_cache(4096)
def _hour(hours: int) -> str:
    return _at(hours).isoformat(timespec="hours")[:13]  # %Y does not pad years below 1000


@lru_cache(4096)
def _partition(layout: DatePartition, hours: int) -> str:
    return layout.path(_at(hours))


def _at(hours: int) -> datetime:
    return _EPOCH + timedelta(hours=hours)
