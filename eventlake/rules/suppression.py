"""Whose events are not loaded: by the user, or by the anonymous visitor, that they name."""

import re
from bisect import bisect_left
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa

from eventlake.rules.events import Reject, identifying
from eventlake.rules.parse import parse_value

_BITS_PER_ID = 32  # of every thirty other ids, some one has to be looked up
_AT_ONCE = 8_192


class IdSet:
    """Ids in order, as Arrow keeps them, and a bit map that says no to most others at once.

    A million ids take some 45 MB; as a Python set they would take three times as much, in every
    process of a task.
    """

    def __init__(self, ids: pa.Array) -> None:
        """Ids in order, each once."""
        self._ids = ids
        size = 1 << max(3, (len(ids) * _BITS_PER_ID).bit_length())
        self._mask = size - 1
        taken = np.zeros(size, np.bool_)
        for start in range(0, len(ids), _AT_ONCE):
            some = ids.slice(start, _AT_ONCE)
            hashes = np.fromiter(map(hash, some.to_pylist()), np.int64, len(some))
            taken[hashes & self._mask] = True
        self._bits = np.packbits(taken, bitorder="little").tobytes()

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, id: str) -> bool:
        slot = hash(id) & self._mask
        if not self._bits[slot >> 3] >> (slot & 7) & 1:
            return False
        place = bisect_left(self._ids, id, key=_text)
        return place < len(self._ids) and bool(_text(self._ids[place]) == id)


def _text(scalar: Any) -> Any:
    return scalar.as_py()


class IdKind(StrEnum):
    """The field of an event that names a person."""

    USER = "userId"
    ANONYMOUS = "anonymousId"


_NAMED = re.compile(rb'"(userId|anonymousId)"\s*:\s*("(?:[^"\\]|\\.)*"|[^\s,"{}\[\]]+)')


@dataclass(frozen=True, slots=True)
class People:
    """The people of one source who are suppressed."""

    users: IdSet
    anonymous: IdSet

    def has(self, event: dict[str, Any]) -> bool:
        """Whether an event is of one of them; ids that are numbers count as they are written."""
        user, visitor = identifying(event.get("userId")), identifying(event.get("anonymousId"))
        return (user is not None and user in self.users) or (
            visitor is not None and visitor in self.anonymous
        )

    def are_named_in(self, line: bytes) -> bool:
        """Whether any of them stands in a line that may be no event, at whatever place."""
        for field, value in _NAMED.findall(line):
            try:
                text = identifying(parse_value(value.decode()))
            except (Reject, UnicodeDecodeError):
                continue
            ids = self.users if field == b"userId" else self.anonymous
            if text is not None and text in ids:
                return True
        return False
