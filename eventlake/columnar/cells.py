"""Parsed events: their values (cells), envelopes and payload hashes."""

from typing import Any, NamedTuple

import numpy as np

from eventlake.columnar.compiled import compiled, inlined
from eventlake.columnar.fields import NONE
from eventlake.columnar.text import PADDING, hashed, mixed, unescaped
from eventlake.columnar.values import ESCAPED, LOOSE_ARRAY, is_verbatim, tight

ENVELOPE = ("type", "event", "messageId", "receivedAt", "userId", "anonymousId")
TYPE, EVENT, ID, RECEIVED, USER, ANONYMOUS = range(6)


class Cells(NamedTuple):
    """The values of events, in order."""

    field: np.ndarray
    kind: np.ndarray
    start: np.ndarray
    end: np.ndarray


class Events(NamedTuple):
    """The facts of each event; events that are not plain have no cells."""

    plain: np.ndarray
    first_cell: np.ndarray  # with one more entry, the end of the last event
    name: np.ndarray  # the event's name below its type, as a field
    received: np.ndarray  # microseconds since 1970
    envelope: np.ndarray  # the cells of the envelope's fields, NONE where there is none
    payload: np.ndarray


def new_cells(room: int) -> Cells:
    return Cells(
        np.empty(room, np.int32),
        np.empty(room, np.uint8),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
    )


def new_events(events: int) -> Events:
    return Events(
        plain=np.zeros(events, np.bool_),
        first_cell=np.zeros(events + 1, np.int64),
        name=np.full(events, NONE, np.int32),
        received=np.zeros(events, np.int64),
        envelope=np.full((events, len(ENVELOPE)), NONE, np.int32),
        payload=np.zeros(events, np.uint32),
    )


_TEXT, _OTHER = np.uint64(0x7E47), np.uint64(0x07E2)


@compiled
def value_hash(buf: int, kind: int, start: int, end: int, scratch: int) -> Any:
    """64 bits from one value."""
    if is_verbatim(kind):
        return hashed(buf, start, end, _TEXT)
    if kind == ESCAPED:
        return hashed(scratch, 0, unescaped(buf, start, end, scratch, 0), _TEXT)
    if kind == LOOSE_ARRAY:
        return hashed(scratch, 0, tight(buf, start, end, scratch, 0), _OTHER)
    return hashed(buf, start, end, _OTHER)


@compiled
def payloads_of(
    buf: int, path: np.ndarray, stamps: np.ndarray, cells: Cells, events: Events
) -> None:
    """The hash of each event, independent of the order of its values, and without `stamps`."""
    room = np.int64(0)
    for cell in range(events.first_cell[-1]):
        room = max(room, np.int64(cells.end[cell] - cells.start[cell]))
    scratch = np.zeros(room + PADDING, np.uint8)
    for row in range(len(events.payload)):
        total = np.uint64(0)
        for cell in range(events.first_cell[row], events.first_cell[row + 1]):
            field = cells.field[cell]
            if field == stamps[0] or field == stamps[1] or field == stamps[2]:
                continue
            start, end = cells.start[cell], cells.end[cell]
            hash = value_hash(buf, cells.kind[cell], start, end, scratch.ctypes.data)
            total += mixed(hash ^ path[field])
        events.payload[row] = folded(total)


@inlined
def folded(total: Any) -> Any:
    """32 bits from the sum of all values of an event, each mixed with its path; never 0."""
    half = np.uint32((total ^ (total >> np.uint64(32))) & np.uint64(0xFFFFFFFF))
    return half if half != 0 else np.uint32(1)
