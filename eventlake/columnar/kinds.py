"""Kinds of JSON values."""

from enum import StrEnum


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
