"""Whether two events of one id say the same: a hash of all but what their transport stamps on."""

from typing import Any

import msgspec
from isal import isal_zlib

UNKNOWN = 0
"""Of events whose raw line is not at hand: an index made again from the tables."""

# They differ between two deliveries of one message; `timestamp` is derived from the others.
_STAMPS = frozenset({"receivedAt", "sentAt", "timestamp"})
_encode = msgspec.json.Encoder().encode


def payload_hash(event: dict[str, Any]) -> int:
    content = {key: value for key, value in event.items() if key not in _STAMPS}
    return isal_zlib.crc32(_encode(content)) or 1
