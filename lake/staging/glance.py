"""A first look at a line: where it belongs, found without taking the whole event apart.

Most lines are plain, and for them this is all that is done one by one; the rest is done for many
lines of a table at once. A line that is odd in any way gets no glance but a careful reading.
"""

from typing import Any, NamedTuple

import msgspec

from lake.dates import parse_timestamp
from lake.envelope import EVENT_TYPES
from lake.names import Naming, table_name
from lake.settings import Limits

_TYPES = frozenset(EVENT_TYPES)
_LONG_TIME = len("2026-10-01T07:00:00.000Z")
_TO_THE_SECOND = len("2026-10-01T07:00:00")
_CACHED = 100_000


class Glance(NamedTuple):
    """Table, time of receipt and id of a plain line."""

    table: str
    received_at: int
    message_id: str


class _Head(msgspec.Struct, gc=False):
    type: Any = None
    event: Any = None
    messageId: Any = None
    receivedAt: Any = None


_decode = msgspec.json.Decoder(_Head, float_hook=msgspec.Raw).decode


class Glances:
    """Looks at lines; remembers the seconds it has seen, since events come many to a second."""

    def __init__(self, limits: Limits, naming: Naming) -> None:
        self._limits = limits
        self._naming = naming
        self._seconds: dict[str, int | None] = {}
        self._tables: dict[tuple[str, str], str] = {}

    def at(self, line: bytes) -> Glance | None:
        """What is seen at a glance, or None: then only a careful reading can tell."""
        if len(line) > self._limits.line_bytes:
            return None
        # There are no more levels than openings.
        if line.count(b"{") + line.count(b"[") > self._limits.depth:
            return None
        try:
            head = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        kind, name, identity = head.type, head.event, head.messageId
        if type(kind) is not str or kind not in _TYPES:
            return None
        if type(identity) is not str or not identity:
            return None
        if kind == "track" and (type(name) is not str or not name or name.isspace()):
            return None
        received = self._moment(head.receivedAt)
        if received is None:
            return None
        name = name if kind == "track" else kind
        table = self._tables.get((kind, name)) or self._table(kind, name)
        return Glance(table, received, identity)

    def _table(self, kind: str, name: str) -> str:
        if len(self._tables) >= _CACHED:
            self._tables.clear()
        table = table_name(kind, name if kind == "track" else None, self._naming)
        self._tables[kind, name] = table
        return table

    def _moment(self, text: Any) -> int | None:
        """The usual form, to the millisecond and in UTC; others are left to `parse_timestamp`."""
        if type(text) is not str:
            return None
        if len(text) == _LONG_TIME and text[-5] == "." and text[-1] == "Z":
            millis = text[-4:-1]
            if millis.isdecimal() and millis.isascii():
                second = self._second(text[:_TO_THE_SECOND])
                return None if second is None else second + int(millis) * 1000
        moment = parse_timestamp(text)
        return None if moment is None else moment[0]

    def _second(self, text: str) -> int | None:
        if text not in self._seconds:
            if len(self._seconds) >= _CACHED:
                self._seconds.clear()
            moment = parse_timestamp(f"{text}Z")
            self._seconds[text] = None if moment is None else moment[0]
        return self._seconds[text]
