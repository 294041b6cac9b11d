"""The five types of the lake's columns."""

from enum import StrEnum

import pyarrow as pa


class LakeType(StrEnum):
    """A column type, spelled as the catalog spells it; `LakeType(sql)` is the way back."""

    BIGINT = "bigint"
    BOOLEAN = "boolean"
    DECIMAL = "decimal(38,6)"
    STRING = "string"
    TIMESTAMP = "timestamp"

    @property
    def sql(self) -> str:
        """The type in the catalog and in SQL."""
        return self.value

    @property
    def arrow(self) -> pa.DataType:
        """The type in Arrow and Parquet."""
        return _ARROW[self]


_ARROW: dict[LakeType, pa.DataType] = {
    LakeType.BIGINT: pa.int64(),
    LakeType.BOOLEAN: pa.bool_(),
    LakeType.DECIMAL: pa.decimal128(38, 6),
    LakeType.STRING: pa.string(),
    LakeType.TIMESTAMP: pa.timestamp("us", tz="UTC"),
}
