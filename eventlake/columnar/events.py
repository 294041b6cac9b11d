"""Parses lines into cells: every value of an event with its field, and its envelope."""

from collections.abc import Sequence

import numpy as np

from eventlake.columnar.cells import EVENT, ID, RECEIVED, TYPE, Cells, Events, folded, value_hash
from eventlake.columnar.compiled import compiled
from eventlake.columnar.fields import FULL, NONE, ROOT, Fields, below, field_of, is_key
from eventlake.columnar.memory import byte
from eventlake.columnar.text import PADDING, after_space, mixed
from eventlake.columnar.timestamps import NO_DATE, may_be_date, timestamp
from eventlake.columnar.values import (
    ARRAY,
    DATE,
    ESCAPED,
    LOOSE_ARRAY,
    MOST_KEYS,
    NULL,
    TEXT,
    after_array,
    after_number,
    after_text,
    after_word,
    is_verbatim,
)


def numbers_of(fields: Fields, keys: Sequence[str]) -> np.ndarray:
    """The numbers of some top-level fields."""
    return np.array([field_of(fields, (key,)) for key in keys], np.int64)


@compiled
def read_events(
    buf: int,
    starts: np.ndarray,
    ends: np.ndarray,
    first: int,
    last: int,
    depth: int,
    fields: Fields,
    names: Fields,
    special: np.ndarray,
    stamps: np.ndarray,
    cells: Cells,
    events: Events,
    serial: int,
) -> int:
    """Parse the lines from `first` to `last`; returns the line at which `cells` was full.

    `special` are the fields of an envelope, `stamps` those that are no part of the payload,
    `names` the tree of types and event names, `serial` the number of line 0 among all ever read.
    """
    field_above, field_event, following = fields.above, fields.event, fields.following
    key_start, key_end, path = fields.key_start, fields.key_end, fields.path
    keys_at = fields.keys.ctypes.data
    cell_field, cell_kind, cell_start, cell_end = cells.field, cells.kind, cells.start, cells.end
    first_cell, envelope = events.first_cell, events.envelope
    above = np.zeros(depth + 1, np.int64)
    is_object = np.zeros(depth + 2, np.bool_)
    first_key = np.zeros(depth + 2, np.int64)
    keys = np.empty(MOST_KEYS, np.uint64)
    scratch = np.zeros(1024, np.uint8)
    scratch_at = scratch.ctypes.data
    cell = first_cell[first]
    room = len(cell_field)
    for row in range(first, last):
        begin = cell
        end = ends[row]
        i = after_space(buf, starts[row], end)
        number = serial + row
        plain = i < end and byte(buf, i) == 0x7B
        level = 0
        seen = ROOT  # the last field
        key_next, may_end = True, True
        i += 1
        while plain:
            i = after_space(buf, i, end)
            if i >= end:
                plain = False
                break
            c = byte(buf, i)
            if not key_next or may_end:
                if c == 0x7D:
                    i += 1
                    level -= 1
                    if level < 0:
                        break
                    key_next, may_end = False, False
                    continue
                if not key_next:
                    if c != 0x2C:
                        plain = False
                        break
                    i = after_space(buf, i + 1, end)
                    c = byte(buf, i)
            if c != 0x22 or i >= end:
                plain = False
                break
            i += 1
            field = np.int64(following[seen])
            if (
                field >= 0
                and field_above[field] == above[level]
                and i + key_end[field] - key_start[field] < end
                and is_key(keys_at, key_start[field], key_end[field], buf, i)
            ):
                i += key_end[field] - key_start[field]
            else:
                close, escapes = after_text(buf, i, end)
                if close < 0 or escapes:
                    plain = False
                    break
                field = below(fields, above[level], buf, i, close)
                if field == FULL:
                    plain = False
                    break
                following[seen] = field
                i = close
            if field_event[field] == number:  # a duplicate key in one object
                plain = False
                break
            field_event[field] = number
            seen = field
            i = after_space(buf, i + 1, end)
            if i >= end or byte(buf, i) != 0x3A:
                plain = False
                break
            i = after_space(buf, i + 1, end)
            if i >= end:
                plain = False
                break
            c = byte(buf, i)
            key_next, may_end = False, False
            start = i
            if c == 0x22:
                start = i + 1
                stop, escapes = after_text(buf, start, end)
                i = stop + 1
                kind = ESCAPED if escapes else TEXT
                if kind == TEXT and stop >= 0 and may_be_date(buf, start, stop):
                    kind = DATE if timestamp(buf, start, stop)[0] != NO_DATE else TEXT
            elif c == 0x7B:
                level += 1
                if level >= depth:
                    plain = False
                    break
                above[level] = field
                key_next, may_end = True, True
                i += 1
                continue
            elif c == 0x5B:
                stop, loose = after_array(
                    buf, i, end, depth - level - 1, is_object, first_key, keys
                )
                i = stop
                kind = LOOSE_ARRAY if loose else ARRAY
            elif c == 0x2D or 0x30 <= c <= 0x39:
                stop, kind = after_number(buf, i, end)
                i = stop
            else:
                stop, kind = after_word(buf, i, end)
                i = stop
            if stop < 0:
                plain = False
                break
            if kind == NULL:
                continue
            if cell == room:
                return row
            cell_field[cell] = field
            cell_kind[cell] = kind
            cell_start[cell] = start
            cell_end[cell] = stop
            if level == 0 and field <= special[-1]:
                for k in range(len(special)):
                    if special[k] == field:
                        envelope[row, k] = cell
            cell += 1
        plain = plain and after_space(buf, i, end) == end
        for k in range(RECEIVED + 1):
            at = envelope[row, k]
            as_text = at != NONE and is_verbatim(cell_kind[at])
            plain = plain and (as_text or (k == EVENT and at == NONE))
        plain = plain and cell_kind[envelope[row, RECEIVED]] == DATE
        name = np.int64(FULL)
        if plain:
            at = envelope[row, ID]
            if cell_end[at] > cell_start[at]:
                at = envelope[row, TYPE]
                name = below(names, ROOT, buf, cell_start[at], cell_end[at])
                at = envelope[row, EVENT]
                if at != NONE and name >= 0:
                    name = below(names, name, buf, cell_start[at], cell_end[at])
        if name == FULL:
            cell = begin
            for k in range(len(special)):
                envelope[row, k] = NONE
            events.plain[row] = False
        else:
            total = np.uint64(0)
            for at in range(begin, cell):
                field = cell_field[at]
                if field == stamps[0] or field == stamps[1] or field == stamps[2]:
                    continue
                start, stop, kind = cell_start[at], cell_end[at], cell_kind[at]
                if stop - start + PADDING > len(scratch):
                    scratch = np.zeros(2 * (stop - start) + PADDING, np.uint8)
                    scratch_at = scratch.ctypes.data
                total += mixed(value_hash(buf, kind, start, stop, scratch_at) ^ path[field])
            at = envelope[row, RECEIVED]
            events.plain[row] = True
            events.name[row] = name
            events.received[row] = timestamp(buf, cell_start[at], cell_end[at])[0]
            events.payload[row] = folded(total)
        first_cell[row + 1] = cell
    return last
