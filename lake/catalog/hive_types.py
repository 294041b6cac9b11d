"""Column types as the catalog spells them, in Arrow's terms."""

import pyarrow as pa

from lake.errors import StateError
from lake.types import LakeType


def arrow_type(text: str) -> pa.DataType:
    """The Arrow type of one of the lake's five, or of an array, map or struct of them."""
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
    try:
        return LakeType(kind).arrow
    except ValueError:
        known = ", ".join(LakeType)
        raise StateError(
            f"The catalog has a column of type {text!r}; known are {known}, and array, map and "
            "struct of these. Use the version of datalake that wrote it, or a newer one."
        ) from None


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
