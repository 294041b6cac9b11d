"""Kinds of JSON values, and the encodings in which columns of them are staged."""

from enum import StrEnum

import pyarrow as pa


class Kind(StrEnum):
    """The kind of a value, for type inference."""

    INT64 = "int64"
    BIGINT_OVERFLOW = "bigint_overflow"
    NUMBER = "number"
    HUGE = "huge"
    BOOL = "bool"
    DATE = "date"
    TEXT = "text"
    ARRAY = "array"


class Encoding(StrEnum):
    INT = "int"
    BOOL = "bool"
    TEXT = "text"
    MILLIS = "millis"
    NUMBER = "number"
    JSON = "json"


ARROW_TYPES = {
    Encoding.INT: pa.int64(),
    Encoding.BOOL: pa.bool_(),
    Encoding.TEXT: pa.string(),
    Encoding.MILLIS: pa.timestamp("us", tz="UTC"),
    Encoding.NUMBER: pa.string(),
    Encoding.JSON: pa.string(),
}
