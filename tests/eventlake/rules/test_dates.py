"""Which texts are dates, and which moments they name."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.rules.dates import parse_timestamp

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-10-01", "2026-10-01T00:00:00+00:00"),
        ("2026-10-01T11:30", "2026-10-01T11:30:00+00:00"),
        ("2026-10-01 11:30", "2026-10-01T11:30:00+00:00"),
        ("2026-10-01T11:30:15", "2026-10-01T11:30:15+00:00"),
        ("2026-10-01T11:30:15Z", "2026-10-01T11:30:15+00:00"),
        ("2026-10-01T11:30Z", "2026-10-01T11:30:00+00:00"),
        ("2026-10-01 11:30:15.5Z", "2026-10-01T11:30:15.500000+00:00"),
        ("2026-10-01T11:30:15.000001Z", "2026-10-01T11:30:15.000001+00:00"),
        ("2026-10-01T11:30:15.123456000Z", "2026-10-01T11:30:15.123456+00:00"),
        ("2026-10-01T11:30:15+02:00", "2026-10-01T09:30:15+00:00"),
        ("2026-10-01T11:30:15+0200", "2026-10-01T09:30:15+00:00"),
        ("2026-10-01T11:30:15+02", "2026-10-01T09:30:15+00:00"),
        ("2026-10-01T11:30-05:45", "2026-10-01T17:15:00+00:00"),
        ("2026-10-01T11:30-00:00", "2026-10-01T11:30:00+00:00"),
        ("2026-10-01T00:00+23:59", "2026-09-30T00:01:00+00:00"),
        ("2024-02-29", "2024-02-29T00:00:00+00:00"),
        ("2000-02-29", "2000-02-29T00:00:00+00:00"),
        ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999+00:00"),
        ("0001-01-01", "0001-01-01T00:00:00+00:00"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999+00:00"),
    ],
)
def test_a_date_names_a_moment(text: str, moment: str) -> None:
    assert parse_timestamp(text) == (micros(datetime.fromisoformat(moment)), False)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("2026-10-01T11:30:15.1234567Z", "2026-10-01T11:30:15.123456+00:00"),
        ("2026-10-01T11:30:15.999999999999Z", "2026-10-01T11:30:15.999999+00:00"),
        ("1969-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.999999+00:00"),
        ("9999-12-31T23:59:59.9999999", "9999-12-31T23:59:59.999999+00:00"),
    ],
)
def test_beyond_microseconds_digits_are_cut_and_that_is_lossy(text: str, kept: str) -> None:
    assert parse_timestamp(text) == (micros(datetime.fromisoformat(kept)), True)


@pytest.mark.parametrize(
    "text",
    [
        "", "2026", "2026-10", "20261001", "2026-1-1", "26-10-01", "02026-10-01", "-2026-10-01",
        "2026/10/01", "01.10.2026", "2026-274", "2026-W40-4", "Oct 1, 2026", "1790812800",
        # Not in the calendar, not on the clock.
        "0000-01-01", "2026-00-01", "2026-13-01", "2026-02-29", "1900-02-29", "2026-04-31",
        "2026-10-00", "2026-10-01T24:00", "2026-10-01T24:00:00", "2026-10-01T11:60",
        "2016-12-31T23:59:60Z",
        # Forms that others allow.
        "2026-10-01T11", "2026-10-01T1130", "2026-10-01t11:30", "2026-10-01T11:30z",
        "2026-10-01T11:30:15,5", "2026-10-01T11:30:15.", "2026-10-01T11:30 Z", "2026-10-01  11:30",
        "2026-10-01T11:30 UTC", "2026-10-01T11:30:15.5.5Z", "2026-10-01_11:30",
        # A date alone has no zone, and a zone is a real one.
        "2026-10-01Z", "2026-10-01+02:00", "2026-10-01T11:30+24:00", "2026-10-01T11:30+02:60",
        "2026-10-01T11:30+2", "2026-10-01T11:30+020", "2026-10-01T11:30+02:", "2026-10-01T11:30+",
        "2026-10-01T11:30+02:00:00", "2026-10-01T11:30Z+02:00",
        # Nothing around it, and no foreign digits.
        " 2026-10-01", "2026-10-01 ", "2026-10-01\n", "\uff12026-10-01", "2026-10-01T1\u0661:30",
        # The moment itself lies outside the years 1 to 9999.
        "0001-01-01T00:00+00:01", "0001-01-01T23:58+23:59", "9999-12-31T23:59-00:01",
    ],
)  # fmt: skip
def test_anything_else_is_no_date(text: str) -> None:
    assert parse_timestamp(text) is None


@given(
    st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)),
    st.integers(-1439, 1439),
    st.sampled_from("T "),
    st.sampled_from(["auto", "minutes", "seconds", "milliseconds", "microseconds"]),
)
def test_what_python_writes_is_read_as_python_meant_it(
    wall: datetime, offset: int, separator: str, precision: str
) -> None:
    moment = wall.replace(tzinfo=timezone(timedelta(minutes=offset)))
    text = moment.isoformat(separator, precision)
    assert parse_timestamp(text) == (micros(datetime.fromisoformat(text)), False)


@given(
    st.from_regex(
        r"[0-9]{4}-[01][0-9]-[0-3][0-9]([T ][0-2][0-9]:[0-6][0-9](:[0-6][0-9])?)?"
        r"(\.[0-9]{1,6})?(Z|[+-][0-2][0-9]:[0-6][0-9])?",
        fullmatch=True,
    )
)
def test_nothing_is_a_date_that_python_does_not_know(text: str) -> None:
    found = parse_timestamp(text)
    if found is not None:
        moment = datetime.fromisoformat(text)
        assert found == (micros(moment if moment.tzinfo else moment.replace(tzinfo=UTC)), False)
