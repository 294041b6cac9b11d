"""Comments as Glue takes them, without losing those that it would refuse."""

import json
from typing import Any

KEPT = "datalake.comment"
"""The parameter that holds, as JSON, a comment which had to be changed for Glue."""

COLUMN_BYTES = 255
TABLE_BYTES = 2048


def fitted(text: str, most: int) -> str:
    """The text on one line and not longer than that many bytes."""
    told = "".join(char if _is_plain(char) else f"\\u{ord(char):04x}" for char in text)
    if len(told.encode()) <= most:
        return told
    return told.encode()[: most - len("…".encode())].decode(errors="ignore") + "…"


def kept(text: str, most: int) -> dict[str, str]:
    """The parameters that keep a comment which does not fit; none for one that does."""
    return {} if fitted(text, most) == text else {KEPT: json.dumps(text)}


def original(told: str, parameters: dict[str, Any], most: int) -> str:
    """The comment that was given; what somebody has written over it in Glue counts more."""
    if KEPT in parameters:
        text = str(json.loads(parameters[KEPT]))
        if fitted(text, most) == told:
            return text
    return told


def _is_plain(char: str) -> bool:
    return char == "\t" or (char >= " " and char not in "\ufffe\uffff")
