"""Which columns of texts Arrow reads at once, and that it reads them as `eventlake.rules.dates` does."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.load.encoding import all_dates, plain_dates
from eventlake.rules.dates import parse_timestamp
from tests.support.oracles.leaves import DATES, DAYS, column_of


@pytest.mark.parametrize(
    "texts",
    [
        ["2026-10-01", "1970-01-01", None],
        ["2026-10-01T07:00:00.123Z", "0001-01-01 00:00:00Z"],
        ["2026-10-01T07:00:00.123456", "2026-10-01", "9999-12-31 23:59:59.9"],
        [None],
    ],
)
def test_usual_dates_are_read_at_once(texts: list[str | None]) -> None:
    read = plain_dates(pa.array(texts, pa.string()))
    assert read is not None
    micros = read.cast(pa.int64()).to_pylist()
    assert micros == [parse_timestamp(text)[0] if text else None for text in texts]  # type: ignore[index]


@pytest.mark.parametrize(
    "texts",
    [
        ["2026-10-01T07:00:00+02:00"],  # an offset
        ["2026-10-01T07:00:00.1234567Z"],  # beyond microseconds
        ["2026-10-01T07:00Z"],  # no seconds
        ["2026-10-01Z"],
        ["2026-10-01T07:00:00Z", "2026-10-01T07:00:00"],  # with and without zone
        ["0000-10-01"],
        ["2026-02-30"],
        ["2026-10-01T24:00:00Z"],
        ["2026-10-01", "yesterday"],
        ["2026-10-01\n"],
        ["٢٠٢٦-10-01"],
    ],
)
def test_others_are_left_to_the_slow_way(texts: list[str]) -> None:
    assert plain_dates(pa.array(texts, pa.string())) is None


def test_what_stands_in_place_of_a_null_is_not_taken_for_a_part_of_dates() -> None:
    letters = "2026-10-01T07:00:002026-10-01T07:00:00"  # the last three are of no text
    offsets = np.array([0, 19, 35, 38], np.int32)
    buffers = [pa.py_buffer(b"\x03"), pa.py_buffer(offsets), pa.py_buffer(letters.encode())]
    texts = pa.Array.from_buffers(pa.string(), 3, buffers, 1)
    assert texts.to_pylist() == ["2026-10-01T07:00:00", "2026-10-01T07:00", None]
    assert plain_dates(texts) is None


@given(st.one_of(column_of(DATES), column_of(DAYS)))
def test_a_column_is_of_dates_if_every_text_is_one(texts: list[str]) -> None:
    each = [parse_timestamp(text) is not None for text in texts]
    assert all_dates(pa.array(texts, pa.string())) is all(each)
