"""Rows of one table that were read together: where they are from, and their fields as columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lake.casting.encoding import Encoding, kinds_of
from lake.kinds import Kind
from lake.staging.leaves import Path
from lake.staging.rows_blob import FILE, HASH, ID, LINE, PAYLOAD, RECEIVED
from lake.staging.seen import Place

ORIGINS = pa.schema(
    [
        (FILE, pa.int32()),
        (LINE, pa.int32()),
        (ID, pa.binary(16)),
        (RECEIVED, pa.int64()),
        (HASH, pa.uint32()),
    ]
)


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
            return pa.RecordBatch.from_arrays(arrays, schema=ORIGINS)
        arrays.append(pa.array(self.payloads, pa.binary()).cast(pa.string()))
        return pa.RecordBatch.from_arrays(arrays, [*ORIGINS.names, PAYLOAD])


class PartColumn(NamedTuple):
    """A field over all rows of a part: its values, where it is first, and maybe their kinds."""

    encoding: Encoding
    array: pa.Array
    first: Place
    known_kinds: frozenset[Kind] | None = None

    def kinds(self) -> frozenset[Kind] | set[Kind]:
        """The kinds of the values."""
        return self.known_kinds or kinds_of(self.encoding, self.array)


class RareField(NamedTuple):
    """A field that few rows of a part have: its values are in a list, under its number."""

    number: int
    encoding: Encoding
    first: Place
    kinds: frozenset[Kind]


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows of a table, and what the first of them calls itself."""

    origins: pa.RecordBatch
    columns: Mapping[Path, PartColumn]
    called: tuple[Place, str]
    rare: Mapping[Path, RareField] = field(default_factory=dict)
    lists: Mapping[Encoding, pa.ListArray] = field(default_factory=dict)
