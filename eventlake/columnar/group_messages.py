"""Rows of groups as Arrow messages, built in the memory that holds their columns."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventlake.columnar.fill import CELLS, TEXTS, VALID
from eventlake.columnar.layout import Layout, aligned, are_texts
from eventlake.columnar.messages import MessageForm, message_form

_WORD = 8


@dataclass(frozen=True, slots=True)
class RowOrigins:
    """Columns that come before those of the events, over the rows of all groups, as bytes; values
    have a fixed width, and none is null."""

    columns: Sequence[np.ndarray]
    widths: Sequence[int]

    @classmethod
    def of(cls, rows: pa.RecordBatch) -> "RowOrigins":
        widths = [type.bit_width // 8 for type in rows.schema.types]
        buffers = [column.buffers()[1] for column in rows.columns]
        return cls([np.frombuffer(buffer, np.uint8) for buffer in buffers], widths)

    def __len__(self) -> int:
        return len(self.widths)

    def room(self, lengths: np.ndarray) -> np.ndarray:
        """Bytes that they take in groups of these lengths."""
        return np.asarray(sum(aligned(width * lengths) for width in self.widths))

    def write(self, memory: np.ndarray, at: int, rows: slice) -> list[int]:
        """Write those of some rows to a place; where the buffers are from there, and their sizes:
        of each the one that says which values are null, which is none, and the values."""
        place, buffers = 0, []
        for column, width in zip(self.columns, self.widths, strict=True):
            values = column[width * rows.start : width * rows.stop]
            memory[at + place : at + place + len(values)] = values
            buffers += [place, 0, place, len(values)]
            place += aligned(len(values))
        return buffers


class GroupMessages:
    """Groups of rows that become messages: all but those whose rare fields are in lists."""

    def __init__(
        self,
        origins: RowOrigins | None,
        facts: np.ndarray,
        last: np.ndarray,
        lengths: np.ndarray,
        rare: np.ndarray,
    ) -> None:
        """`last` is where the columns of each group end. Without origins there are no messages."""
        self._origins, self._last, self._lengths = origins, last, lengths
        self._texts = are_texts(facts)
        self._filled = facts[:, CELLS]
        columns = np.diff(last, prepend=0)
        if not np.all(columns):  # every event has a type
            raise ValueError("a group of events has no field at all")
        texts = _by_group(self._texts, last)
        plain = [] if origins is None else np.flatnonzero(_by_group(rare, last) == 0).tolist()
        others = columns - texts + (0 if origins is None else len(origins))
        self._forms: dict[int, MessageForm] = {
            group: message_form(int(texts[group]), int(others[group])) for group in plain
        }
        self.room = np.zeros(len(lengths), np.int64)
        """Bytes that are needed before the columns of each group."""
        for group, form in self._forms.items():
            self.room[group] = form.bytes
        if origins is not None:
            self.room[plain] += origins.room(lengths[plain])

    def write(self, buffer: pa.Buffer, layout: Layout) -> dict[int, pa.Buffer]:
        """The messages by group, when all of their columns are in memory."""
        if self._origins is None or not self._forms:
            return {}
        columns = np.column_stack([self._each(self._lengths), self._nulls()])
        ends = np.cumsum(self._lengths).tolist()
        first = np.concatenate([[0], self._last[:-1]])
        begins = layout.buffers[first, VALID] - self.room
        after = np.append(begins[1:], layout.columns_end).tolist()
        bodies = begins + [
            self._forms[group].bytes if group in self._forms else 0 for group in range(len(begins))
        ]
        spots, last_spot = self._spots(layout, self._each(bodies))
        memory = np.frombuffer(buffer, np.uint8)
        numbers = memory[: len(memory) // _WORD * _WORD].view(np.int64)
        found: dict[int, pa.Buffer] = {}
        for group, form in self._forms.items():
            begin, body, length = int(begins[group]), int(bodies[group]), int(self._lengths[group])
            at = begin // _WORD
            numbers[at : at + len(form.numbers)] = form.numbers
            numbers[at + form.rows] = length
            numbers[at + form.body] = after[group] - body
            rows = slice(ends[group] - length, ends[group])
            before = self._origins.write(memory, body, rows)
            mine = slice(first[group], self._last[group])
            _put(numbers, at + form.columns, [length, 0] * len(self._origins), columns[mine])
            of_group = spots[last_spot[group - 1] if group else 0 : last_spot[group]]
            _put(numbers, at + form.buffers, before, of_group)
            found[group] = buffer.slice(begin, after[group] - begin)
        return found

    def _nulls(self) -> np.ndarray:
        return np.asarray(self._each(self._lengths) - self._filled)

    def _each(self, of_group: np.ndarray) -> np.ndarray:
        """What holds of a group, for each of its columns."""
        return np.repeat(of_group, np.diff(self._last, prepend=0))

    def _spots(self, layout: Layout, bodies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The places and sizes of all buffers of columns, and where those of each group end."""
        columns = len(self._filled)
        starts = layout.buffers[:columns, VALID : TEXTS + 1] - bodies[:, None]
        sizes = layout.sizes[:columns, :3].copy()
        sizes[self._nulls() == 0, 0] = 0  # all rows have a value
        present = np.ones((columns, 3), np.bool_)
        present[:, 2] = self._texts
        spots = np.stack([starts, sizes], axis=2)[present]
        return spots, np.cumsum(2 + self._texts)[self._last - 1]


def _put(numbers: np.ndarray, at: int, before: list[int], pairs: np.ndarray) -> None:
    """Write pairs of numbers to a place, after some others."""
    middle = at + len(before)
    numbers[at:middle] = before
    numbers[middle : middle + pairs.size] = pairs.ravel()


def _by_group(counted: np.ndarray, last: np.ndarray) -> np.ndarray:
    """How many columns of each group are counted."""
    total = np.concatenate([[0], np.cumsum(counted)])
    return np.diff(total[last], prepend=0)
