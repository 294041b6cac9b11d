"""Staged batches: rows of one table as parsed cells, not yet cast to types."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from eventlake.columnar.batches import HEAD
from eventlake.columnar.filling import StagedRows
from eventlake.columnar.id_hashes import ID_BYTES, checksums
from eventlake.load.blobs import Blob, packed, parts_of, unpacked
from eventlake.load.seen import positions

PAYLOAD = ("#payload", "#payload")
"""The field of the whole event, if payloads are kept; other pointers start with a slash."""
Field = tuple[str, str]
"""A pointer and the column of its values; empty if they are rescued."""
_SIZE = struct.Struct("<q")


def encoded_fields(fields: Sequence[Field]) -> bytes:
    head = packed(pa.py_buffer(msgspec.msgpack.encode(fields)))
    return _SIZE.pack(len(head)) + head


@lru_cache(4096)  # batches of a table mostly share it
def _decoded_fields(head: bytes) -> list[Field]:
    return msgspec.msgpack.decode(unpacked(memoryview(head)[_SIZE.size :]), type=list[Field])


class StagedBatch:
    """The rows of a blob; `columnar/batches.py` describes their layout."""

    def __init__(self, blob: Blob) -> None:
        (size,) = _SIZE.unpack_from(blob.data)
        begin = _SIZE.size + size
        self.head = blob.data[:begin]
        self.body = unpacked(memoryview(blob.data)[begin:])
        self.partitions = parts_of(blob)
        rows, cells, _ = np.frombuffer(self.body, np.int64, 3).tolist()
        at = HEAD
        self.ids = np.frombuffer(self.body, np.dtype((np.void, ID_BYTES)), rows, at)
        at += ID_BYTES * rows
        self.received = np.frombuffer(self.body, np.int64, rows, at)
        at += 8 * rows
        numbers = np.frombuffer(self.body, np.int32, 4 * rows, at).reshape(4, rows)
        self.files, self.lines, self.cells, self.bytes = numbers
        self._codes = at + 16 * rows
        self._lengths = self._codes + 4 * cells
        self._values = self._lengths + cells

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def fields(self) -> list[Field]:
        return _decoded_fields(self.head)

    def rows(self, base: int) -> StagedRows:
        """The addresses of the rows; the columns of their fields start at `base`."""
        cells, sizes = self.cells.astype(np.int64), self.bytes.astype(np.int64)
        before, at = np.cumsum(cells) - cells, self.body.address
        return StagedRows(
            at + self._codes + 4 * before,
            at + self._lengths + before,
            at + self._values + np.cumsum(sizes) - sizes,
            cells,
            sizes,
            np.full(len(cells), base),
        )

    def divided(self) -> list[bytes]:
        """The rows of each partition, as the data of a blob of its own."""
        cells, sizes = np.cumsum([0, *self.cells]), np.cumsum([0, *self.bytes])
        memory = memoryview(self.body)
        ends = np.cumsum([0, *self.partitions.values()]).tolist()
        found = []
        for start, stop in pairwise(ends):
            first, last = cells[start], cells[stop]
            counts = np.array([stop - start, last - first, sizes[stop] - sizes[start]], np.int64)
            sections = (self.ids, self.received, self.files, self.lines, self.cells, self.bytes)
            body: list[Any] = [
                counts.tobytes(),
                *(section[start:stop].tobytes() for section in sections),
                memory[self._codes + 4 * first : self._codes + 4 * last],
                memory[self._lengths + first : self._lengths + last],
                memory[self._values + sizes[start] : self._values + sizes[stop]],
            ]
            found.append(self.head + packed(pa.py_buffer(b"".join(body))))
        return found


@dataclass(frozen=True, slots=True)
class StagedTable:
    """Rows of one table without duplicates, in the order of the files."""

    batches: Sequence[StagedBatch]
    order: np.ndarray  # the rows of all batches: by partition, as received
    files: np.ndarray  # the origin of each of these rows
    lines: np.ndarray
    slices: dict[str, slice]  # the rows of each key of staged rows

    @classmethod
    def of(
        cls, blobs: Iterable[Blob], duplicates: np.ndarray, keys: Mapping[str, str] | None = None
    ) -> "StagedTable | None":
        """The kept rows, None without any; with keys, only rows of these partitions."""
        batches = list(map(StagedBatch, blobs))
        received, files, lines = (
            np.concatenate([getattr(batch, name) for batch in batches])
            for name in ("received", "files", "lines")
        )
        in_order = [item for batch in batches for item in batch.partitions.items()]
        names = sorted({key for key, _ in in_order})
        code = {key: number for number, key in enumerate(names)}
        codes = np.repeat([code[key] for key, _ in in_order], [rows for _, rows in in_order])
        left_out = _is_in(duplicates, positions(files, lines))
        if keys is not None:
            left_out |= np.array([key not in keys for key in names])[codes]
        kept = np.flatnonzero(~left_out)
        if not len(kept):
            return None
        order = kept[np.lexsort([lines[kept], files[kept], received[kept], codes[kept]])]
        ends = np.searchsorted(codes[order], np.arange(len(names) + 1)).tolist()
        slices = {key: slice(ends[number], ends[number + 1]) for key, number in code.items()}
        kept_slices = {key: rows for key, rows in slices.items() if rows.start < rows.stop}
        return cls(batches, order, files[order], lines[order], kept_slices)

    def __len__(self) -> int:
        return len(self.order)

    def checksums(self) -> dict[str, int]:
        """By key of staged rows, the checksum of the kept ids."""
        ids = np.concatenate([batch.ids for batch in self.batches])
        data = pa.py_buffer(ids[self.order])
        array = pa.Array.from_buffers(pa.binary(ID_BYTES), len(self), [None, data], 0)
        sizes = [rows.stop - rows.start for rows in self.slices.values()]
        sums = checksums(array, np.repeat(np.arange(len(sizes)), sizes))
        return {key: sums[number] for number, key in enumerate(self.slices)}

    def rows(self) -> tuple[StagedRows, list[Field]]:
        """The rows in order, and the fields of all batches, batch by batch."""
        fields: list[Field] = []
        begins: dict[bytes, int] = {}
        found = []
        for batch in self.batches:
            if batch.head not in begins:
                begins[batch.head] = len(fields)
                fields += batch.fields
            found.append(batch.rows(begins[batch.head]))
        whole = (np.concatenate(arrays)[self.order] for arrays in zip(*found, strict=True))
        return StagedRows(*whole), fields


def _is_in(some: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Whether each number is among some sorted ones."""
    if not len(some):
        return np.zeros(len(numbers), np.bool_)
    at = np.minimum(np.searchsorted(some, numbers), len(some) - 1)
    return np.asarray(some[at] == numbers)
