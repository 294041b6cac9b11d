"""The fields of events as a tree: each gets a number when it first occurs."""

from typing import NamedTuple

import numpy as np

from eventlake.columnar.compiled import compiled, inlined
from eventlake.columnar.memory import address, byte, eight
from eventlake.columnar.text import PADDING, hashed

ROOT = 0
NONE = -1
ROOT_PATH = np.uint64(0x5DA7A1A4E)
FULL = -2
MOST_FIELDS = 1 << 16
_KEY_BYTES = 1 << 20
_SLOTS = 1 << 17  # twice the maximum number of fields


class Fields(NamedTuple):
    """A field is a number with a parent, a key, and a hash of its path."""

    above: np.ndarray
    key_start: np.ndarray
    key_end: np.ndarray
    keys: np.ndarray
    path: np.ndarray
    slots: np.ndarray  # by hash of the path: the field, or NONE
    following: np.ndarray  # the field that followed it the last time
    event: np.ndarray  # the last event in which it was seen
    used: np.ndarray  # the numbers of fields and of key bytes


def new_fields() -> Fields:
    """The root alone."""
    fields = Fields(
        above=np.full(MOST_FIELDS, NONE, np.int32),
        key_start=np.zeros(MOST_FIELDS, np.int32),
        key_end=np.zeros(MOST_FIELDS, np.int32),
        keys=np.zeros(_KEY_BYTES + PADDING, np.uint8),
        path=np.zeros(MOST_FIELDS, np.uint64),
        slots=np.full(_SLOTS, NONE, np.int32),
        following=np.full(MOST_FIELDS, NONE, np.int32),
        event=np.full(MOST_FIELDS, NONE, np.int64),
        used=np.array([1, 0], np.int64),
    )
    fields.path[ROOT] = ROOT_PATH
    return fields


def grown(fields: Fields) -> Fields:
    """The same fields, with twice the capacity."""
    twice = {
        name: np.concatenate([part, np.full_like(part, NONE)])
        for name, part in fields._asdict().items()
        if name not in ("keys", "path", "used")
    }
    twice["slots"][:] = NONE
    twice |= {
        n: np.concatenate([p, np.zeros_like(p)])
        for n, p in (("keys", fields.keys), ("path", fields.path))
    }
    larger = Fields(**twice, used=fields.used.copy())
    _fill_slots(larger.path, larger.slots, int(larger.used[0]))
    return larger


@compiled
def _fill_slots(path: np.ndarray, slots: np.ndarray, used: int) -> None:
    mask = np.uint64(len(slots) - 1)
    for field in range(1, used):
        slot = path[field] & mask
        while slots[slot] != NONE:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = field


def field_of(fields: Fields, path: tuple[str, ...]) -> int:
    """The number of a field by its path."""
    field = ROOT
    for key in path:
        data = np.frombuffer(key.encode() + bytes(PADDING), np.uint8)
        field = int(below(fields, field, address(data), 0, len(data) - PADDING))
    return field


def path_of(fields: Fields, field: int) -> tuple[str, ...]:
    """The path of a field; the inverse of `field_of`."""
    path: list[str] = []
    while field != ROOT:
        key = fields.keys[fields.key_start[field] : fields.key_end[field]]
        path.append(key.tobytes().decode())
        field = int(fields.above[field])
    return tuple(reversed(path))


@inlined
def is_key(keys: int, key: int, end: int, buf: int, i: int) -> bool:
    """Whether a buffer has a key at a position, followed by a quote."""
    while key + 8 <= end:
        if eight(keys, key) != eight(buf, i):
            return False
        key += 8
        i += 8
    left = end - key
    if left > 0:
        beyond = np.uint64(8 * (8 - left))
        if eight(keys, key) << beyond != eight(buf, i) << beyond:
            return False
    return byte(buf, i + left) == 0x22


@compiled
def below(fields: Fields, above: int, buf: int, start: int, end: int) -> int:
    """The child of a field with a key, created if it is new; FULL if the capacity is exhausted."""
    h = hashed(buf, start, end, fields.path[above])
    mask = np.uint64(len(fields.slots) - 1)
    slot = h & mask
    while True:
        field = fields.slots[slot]
        if field == NONE:
            break
        if fields.path[field] == h and fields.above[field] == above:
            key = fields.key_start[field]
            same = fields.key_end[field] - key == end - start
            i = start
            while same and i < end:
                same = byte(buf, i) == fields.keys[key]
                key += 1
                i += 1
            if same:
                return np.int64(field)
        slot = (slot + np.uint64(1)) & mask
    field, at = fields.used[0], fields.used[1]
    if field == len(fields.above) or at + end - start + PADDING > len(fields.keys):
        return np.int64(FULL)
    fields.slots[slot] = field
    fields.above[field] = above
    fields.path[field] = h
    fields.key_start[field] = at
    for i in range(start, end):
        fields.keys[at] = byte(buf, i)
        at += 1
    fields.key_end[field] = at
    fields.used[0] = field + 1
    fields.used[1] = at
    return np.int64(field)
