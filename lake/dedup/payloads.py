"""Whether two events of one id say the same: a hash of all but what their transport stamps on."""

from collections.abc import Iterable
from typing import Any

import msgspec
from isal import isal_zlib

UNKNOWN = 0
"""Of events whose raw line is not at hand: an index made again from the tables."""

# They differ between two deliveries of one message; `timestamp` is derived from the others.
STAMPS = ("receivedAt", "sentAt", "timestamp")
_encode = msgspec.json.Encoder().encode


def payload_hash(event: dict[str, Any]) -> int:
    """The hash of an event: the same whatever the order of its keys, and with nulls or without."""
    content = {key: value for key, value in event.items() if key not in STAMPS}
    return _hash(_encode(_in_order(content)))


def payload_hashes(records: Iterable[object]) -> list[int]:
    """The same of events as records whose fields are in order of name, rid of their stamps."""
    return list(map(_hash, map(_encode, records)))


def _hash(content: bytes) -> int:
    return isal_zlib.crc32(content) or 1


def _in_order(content: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _in_order(value) if type(value) is dict else value
        for key, value in sorted(content.items())
        if value is not None
    }
