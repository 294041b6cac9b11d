"""The four partition layouts of event tables, by `receivedAt`."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache


class DatePartition(StrEnum):
    """A partition layout; the value is the spelling in `lake.yaml`.

    Keys and formats are stored in folder names and in the catalog: changing one here
    orphans every table that exists.
    """

    DAY_HOUR = "day/hour"
    YEAR_MONTH_DAY_HOUR = "year/month/day/hour"
    YEAR_MONTH_DAY = "year/month/day"
    DAY = "day"

    @property
    def keys(self) -> tuple[str, ...]:
        """The partition keys, outermost first."""
        return tuple(_FORMATS[self])

    @property
    def has_hours(self) -> bool:
        """Whether a partition is one hour; otherwise it is one day."""
        return "hr" in _FORMATS[self]

    def values(self, hour: datetime) -> tuple[str, ...]:
        """The key values of the partition that contains a time."""
        at = _utc(hour)
        return tuple(template.format(at) for template in _FORMATS[self].values())

    def path(self, hour: datetime) -> str:
        """The partition path, relative to the table, for a time."""
        return "/".join(map("=".join, zip(self.keys, self.values(hour), strict=True)))

    def floor(self, moment: datetime) -> datetime:
        """The start of the partition that contains a time, in UTC."""
        at = _utc(moment).replace(minute=0, second=0, microsecond=0)
        return at if self.has_hours else at.replace(hour=0)

    def parse(self, values: Sequence[str]) -> datetime:
        """The start of the partition with these values, in UTC; the inverse of `values`."""
        return _parsed(self, tuple(values))


@lru_cache(maxsize=10_000)  # all tables have the same hours
def _parsed(layout: DatePartition, values: tuple[str, ...]) -> datetime:
    parts = dict(zip(layout.keys, values, strict=True))
    day = "-".join(parts[key] for key in ("year", "month", "day") if key in parts)
    start = datetime.fromisoformat(f"{day}T{parts.get('hr', '00')}:00:00+00:00")
    if layout.values(start) != values:
        raise ValueError(f"{values!r} is not spelled like a partition of {layout.value}")
    return start


# `str.format`, because %Y of `strftime` does not pad years below 1000 on every platform.
_WHOLE_DAY = "{0.year:04}-{0.month:02}-{0.day:02}"
_SPLIT_DAY = {"year": "{0.year:04}", "month": "{0.month:02}", "day": "{0.day:02}"}
_HOUR = {"hr": "{0.hour:02}"}

_FORMATS: Mapping[DatePartition, Mapping[str, str]] = {
    DatePartition.DAY_HOUR: {"day": _WHOLE_DAY, **_HOUR},
    DatePartition.YEAR_MONTH_DAY_HOUR: {**_SPLIT_DAY, **_HOUR},
    DatePartition.YEAR_MONTH_DAY: _SPLIT_DAY,
    DatePartition.DAY: {"day": _WHOLE_DAY},
}


def _utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} has no time zone; partitions are hours of UTC")
    return moment.astimezone(UTC)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY_US = 86_400_000_000
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
