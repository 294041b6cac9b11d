"""The catalog's spelling of a type and Arrow's mean the same."""

import pyarrow as pa
import pytest

from eventlake.catalog.hive_types import arrow_type
from eventlake.catalog.sync_reports import COLUMNS
from eventlake.rules.errors import StateError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bigint", pa.int64()),
        ("decimal(38,6)", pa.decimal128(38, 6)),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("double", pa.float64()),
        ("int", pa.int32()),
        ("date", pa.date32()),
        ("varchar(10)", pa.string()),
        ("decimal(10, 2)", pa.decimal128(10, 2)),
        ("array<map<string,string>>", pa.list_(pa.map_(pa.string(), pa.string()))),
        ("map<string,decimal(38,6)>", pa.map_(pa.string(), pa.decimal128(38, 6))),
        (
            "array<struct<name:string,counts:map<string,bigint>>>",
            pa.list_(
                pa.struct([("name", pa.string()), ("counts", pa.map_(pa.string(), pa.int64()))])
            ),
        ),
    ],
)
def test_types_are_understood(text: str, expected: pa.DataType) -> None:
    assert arrow_type(text) == expected


@pytest.mark.parametrize("text", ["uniontype<int>", "array<interval>", "decimal", ""])
def test_other_types_are_refused(text: str) -> None:
    with pytest.raises(StateError, match="known are bigint, boolean"):
        arrow_type(text)


def test_every_column_of_the_reports_is_of_a_known_type() -> None:
    assert len([arrow_type(column.type) for column in COLUMNS]) == 20 + 10
