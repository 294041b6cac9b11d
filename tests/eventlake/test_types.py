"""The five types in SQL and in Arrow."""

import pyarrow as pa
import pytest

from eventlake.rules.types import LakeType


@pytest.mark.parametrize(
    ("sql", "arrow"),
    [
        ("bigint", pa.int64()),
        ("boolean", pa.bool_()),
        ("decimal(38,6)", pa.decimal128(38, 6)),
        ("string", pa.string()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
    ],
)
def test_a_type_is_known_by_its_sql_and_has_its_arrow_type(sql: str, arrow: pa.DataType) -> None:
    assert LakeType(sql).sql == sql
    assert LakeType(sql).arrow == arrow


def test_there_are_five() -> None:
    assert len(LakeType) == 5
