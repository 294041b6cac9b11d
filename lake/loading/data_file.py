"""How data files are written, whoever writes them."""

from typing import Any

ROW_GROUP = 128 * 1024
"""Rows that readers can skip as one."""

# Without Arrow's own schema in it the file says the same to every reader.
ENCODING: dict[str, Any] = {"compression": "zstd", "store_schema": False}
