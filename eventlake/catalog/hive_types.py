"""Column types as the catalog spells them, in Arrow's terms."""

import re

import pyarrow as pa

from eventlake.rules.errors import StateError
from eventlake.rules.types import LakeType


def arrow_type(text: str) -> pa.DataType:
    """The Arrow type of one of the lake's five, of Hive's others, or of a nesting of them."""
    kind, _, inner = text.strip().removesuffix(">").partition("<")
    match kind:
        case "array":
            return pa.list_(arrow_type(inner))
        case "map":
            key, value = _split(inner)
            return pa.map_(arrow_type(key), arrow_type(value))
        case "struct":
            fields = (field.partition(":") for field in _split(inner))
            return pa.struct([pa.field(name.strip(), arrow_type(of)) for name, _, of in fields])
    if found := _DECIMAL.fullmatch(kind):
        return pa.decimal128(int(found[1]), int(found[2]))
    try:
        return _OTHERS.get(kind.partition("(")[0]) or LakeType(kind).arrow
    except ValueError:
        known = ", ".join(LakeType)
        raise StateError(
            f"The catalog has a column of type {text!r}; known are {known}, Hive's other plain "
            "types, and array, map and struct of these. Give the column one of them."
        ) from None


_DECIMAL = re.compile(r"decimal\((\d+), *(\d+)\)", re.ASCII)
# The lake makes none of these, but people add columns of their own.
_OTHERS = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "binary": pa.binary(),
    "varchar": pa.string(),
    "char": pa.string(),
}


def _split(text: str) -> list[str]:
    """Cut at the commas that are not inside brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts
