"""Columns by whatever name: `properties.productID`, `properties__product_id`."""

import re

_VARIANT = re.compile(r"__v_[a-z0-9_]+$")
_OTHER = re.compile(r"[^a-z0-9]+")


def column_key(name: str) -> str:
    """Letters and digits alone; dlt's variants of a column (a fraction among integers) are it."""
    return _OTHER.sub("", _VARIANT.sub("", name).lower())
