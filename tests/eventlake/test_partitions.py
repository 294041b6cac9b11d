"""The four layouts: their folders, and the way from a time to a partition and back."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.rules.partitions import DatePartition

AT = datetime(2020, 5, 11, 11, 59, 59, 999_999, tzinfo=UTC)


@pytest.mark.parametrize(
    ("layout", "path", "start"),
    [
        ("day/hour", "day=2020-05-11/hr=11", datetime(2020, 5, 11, 11, tzinfo=UTC)),
        (
            "year/month/day/hour",
            "year=2020/month=05/day=11/hr=11",
            datetime(2020, 5, 11, 11, tzinfo=UTC),
        ),
        ("year/month/day", "year=2020/month=05/day=11", datetime(2020, 5, 11, tzinfo=UTC)),
        ("day", "day=2020-05-11", datetime(2020, 5, 11, tzinfo=UTC)),
    ],
)
def test_each_layout_has_its_folders_and_its_start(layout: str, path: str, start: datetime) -> None:
    partition = DatePartition(layout)
    assert partition.path(AT) == path
    assert partition.floor(AT) == start
    assert partition.has_hours == ("hr=" in path)
    assert partition.keys == tuple(part.split("=")[0] for part in path.split("/"))
    assert partition.values(AT) == tuple(part.split("=")[1] for part in path.split("/"))


def test_the_hour_is_that_of_utc() -> None:
    at_home = datetime(2020, 5, 11, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    assert DatePartition.DAY_HOUR.path(at_home) == "day=2020-05-10/hr=23"
    assert DatePartition.DAY.floor(at_home) == datetime(2020, 5, 10, tzinfo=UTC)


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        DatePartition.DAY.path(datetime(2020, 5, 11))


@given(
    st.sampled_from(DatePartition),
    st.datetimes(min_value=datetime(1, 1, 1), timezones=st.just(UTC)),
)
def test_the_values_of_a_partition_lead_back_to_its_start(
    layout: DatePartition, at: datetime
) -> None:
    assert layout.parse(layout.values(at)) == layout.floor(at)


@pytest.mark.parametrize(
    ("layout", "values"),
    [
        ("day/hour", ("2020-05-11", "24")),
        ("day/hour", ("20200511", "11")),
        ("day/hour", ("2020-05-11",)),
        ("day", ("2020-02-30",)),
        ("year/month/day", ("2020", "5", "11")),
    ],
)
def test_values_that_no_time_gives_are_refused(layout: str, values: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"."):
        DatePartition(layout).parse(values)
