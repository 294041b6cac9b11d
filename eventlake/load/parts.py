"""Rows of one table that were read together: where they are from, and their fields as columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from eventlake.columnar.kinds import Encoding, Kind
from eventlake.load.blobs import HASH, ORIGINS, PAYLOAD
from eventlake.load.encoding import joined, kinds_of
from eventlake.load.seen import RawPosition
from eventlake.rules.events import Path

HASHED_ORIGINS = ORIGINS.append(pa.field(HASH, pa.uint32()))
"""With a hash of the payload, which is not staged."""


@dataclass(slots=True)
class Origins:
    """Where rows are from, with their ids, and the hashes of their payloads or all of them."""

    files: Sequence[int] | np.ndarray
    numbers: Sequence[int] | np.ndarray
    ids: Sequence[bytes] | pa.Array
    received: Sequence[int] | np.ndarray
    hashes: Sequence[int] | np.ndarray
    payloads: Sequence[bytes] | None = None

    def batch(self) -> pa.RecordBatch:
        arrays = [
            pa.array(np.asarray(self.files, np.int32)),
            pa.array(np.asarray(self.numbers, np.int32)),
            self.ids if isinstance(self.ids, pa.Array) else pa.array(self.ids, pa.binary(16)),
            pa.array(np.asarray(self.received, np.int64)),
            pa.array(np.asarray(self.hashes, np.uint32)),
        ]
        if self.payloads is None:
            return pa.RecordBatch.from_arrays(arrays, schema=HASHED_ORIGINS)
        arrays.append(pa.array(self.payloads, pa.binary()).cast(pa.string()))
        return pa.RecordBatch.from_arrays(arrays, [*HASHED_ORIGINS.names, PAYLOAD])


class Arrays(Protocol):
    """Columns by their number."""

    def __getitem__(self, column: int, /) -> pa.Array: ...


class PartColumn(NamedTuple):
    """A field over all rows of a part: its values, where it is first, and maybe their kinds."""

    encoding: Encoding
    arrays: Arrays
    number: int  # of its own among these
    first: RawPosition
    known_kinds: frozenset[Kind] | None = None

    @property
    def array(self) -> pa.Array:
        return self.arrays[self.number]

    def kinds(self) -> frozenset[Kind]:
        """The kinds of the values."""
        return self.known_kinds or frozenset(kinds_of(self.encoding, self.array))


class RareField(NamedTuple):
    """A field that few rows of a part have: its values are in a list, under its number."""

    path: Path
    number: int
    encoding: Encoding
    first: RawPosition
    kinds: frozenset[Kind]


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows of a table, and what the first of them calls itself."""

    origins: pa.RecordBatch
    columns: Mapping[Path, PartColumn]
    called: tuple[RawPosition, str]
    rare: Sequence[RareField] = ()
    lists: Mapping[Encoding, pa.ListArray] = field(default_factory=dict)
    message: pa.Buffer | None = None
    """Where the rows are from, without hashes, and all columns: as they are staged."""

    def __len__(self) -> int:
        return len(self.origins)


def joined_parts(parts: Sequence[Part]) -> Part:
    """Parts of a table as one, with every field over all rows, whichever of the parts have it."""
    if len(parts) == 1:
        return parts[0]
    paths = dict.fromkeys(path for part in parts for path in part.columns)
    encodings = dict.fromkeys(encoding for part in parts for encoding in part.lists)
    lists = {e: [part.lists.get(e) for part in parts] for e in encodings}
    return Part(
        pa.concat_batches([part.origins for part in parts]),
        {path: _joined_column([part.columns.get(path) for part in parts], parts) for path in paths},
        min(part.called for part in parts),
        [rare for part in parts for rare in part.rare],
        {encoding: _over_all(found, parts) for encoding, found in lists.items()},
    )


def _joined_column(found: Sequence[PartColumn | None], parts: Sequence[Part]) -> PartColumn:
    present = [column for column in found if column is not None]
    arrays = [column.array for column in present]
    encoding, array = joined([(c.encoding, a) for c, a in zip(present, arrays, strict=True)])
    ends = np.cumsum(list(map(len, arrays))).tolist()
    pieces = iter([array.slice(start, end - start) for start, end in pairwise([0, *ends])])
    whole = _over_all([None if column is None else next(pieces) for column in found], parts)
    return PartColumn(
        encoding,
        [whole],
        0,
        min(column.first for column in present),
        frozenset().union(*(column.kinds() for column in present)),
    )


def _over_all(found: Sequence[pa.Array | None], parts: Sequence[Part]) -> pa.Array:
    """What some parts have, with nulls for the rows of the others."""
    type = next(array.type for array in found if array is not None)
    return pa.concat_arrays(
        pa.nulls(len(part), type) if array is None else array
        for array, part in zip(found, parts, strict=True)
    )
