"""How data files are written, whoever writes them."""

from typing import Any

ROW_GROUP = 128 * 1024
"""Rows that readers can skip as one."""

_DICTIONARIES_FROM = 1024  # rows: of fewer they save nothing beside zstd, and take a fifth of it


def encoding(rows: int) -> dict[str, Any]:
    """The options of a writer of about so many rows."""
    return {
        "compression": "zstd",
        "use_dictionary": rows >= _DICTIONARIES_FROM,
        # Without Arrow's own schema in it the file says the same to every reader.
        "store_schema": False,
    }
