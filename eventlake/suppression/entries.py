"""The lists of suppressed people as a table: an id, what kind it is, for which source, since when.

They are never changed in place: each change makes the next numbered version, and a run uses the
one that was there when it was planned.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventlake.rules.errors import StateError
from eventlake.rules.suppression import IdKind
from eventlake.storage.documents import FORMAT_VERSION

WHOLE_LAKE = ""
"""As the source of an entry: it counts for all of them."""

_VERSION_KEY = b"format_version"
_SCHEMA = pa.schema(
    [
        ("source_id", pa.string()),
        ("kind", pa.string()),
        ("id", pa.string()),
        ("added", pa.timestamp("us", "UTC")),
    ],
    {_VERSION_KEY: str(FORMAT_VERSION)},
)
_ORDER = [("source_id", "ascending"), ("kind", "ascending"), ("id", "ascending")]


@dataclass(frozen=True, slots=True)
class Entries:
    """All entries of a version, in order."""

    table: pa.Table = field(default_factory=_SCHEMA.empty_table)

    def __len__(self) -> int:
        return len(self.table)

    def of(self, kind: IdKind, source_id: str = WHOLE_LAKE) -> pa.Array:
        """The ids of a kind that are listed for a source itself, or for the whole lake."""
        return self.table.filter(_matching(kind, source_id))["id"].combine_chunks()

    def applying_to(self, kind: IdKind, source_id: str) -> pa.Array:
        """The ids of a kind that count for a source, in order."""
        mine = pc.is_in(pc.field("source_id"), pa.array([WHOLE_LAKE, source_id]))
        found = self.table.filter((pc.field("kind") == kind.value) & mine)["id"]
        ids = pc.unique(found.combine_chunks())
        return ids.take(pc.sort_indices(ids))

    def with_ids(self, ids: Iterable[str], kind: IdKind, source_id: str, now: datetime) -> Self:
        """The same with ids added; those that are there keep the time at which they came."""
        known = set(self.of(kind, source_id).to_pylist())
        new = [id for id in dict.fromkeys(ids) if id not in known]
        added = pa.table(
            {
                "source_id": pa.array([source_id] * len(new), pa.string()),
                "kind": pa.array([kind.value] * len(new), pa.string()),
                "id": pa.array(new, pa.string()),
                "added": pa.array([now] * len(new), _SCHEMA.field("added").type),
            },
            _SCHEMA,
        )
        return type(self)(pa.concat_tables([self.table, added]).sort_by(_ORDER))

    def without_ids(self, ids: Iterable[str], kind: IdKind, source_id: str) -> Self:
        gone = pc.is_in(pc.field("id"), pa.array(list(ids), pa.string()))
        return type(self)(self.table.filter(~(_matching(kind, source_id) & gone)))

    def rows(self) -> Iterator[Mapping[str, object]]:
        for batch in self.table.to_batches(max_chunksize=10_000):
            yield from batch.to_pylist()

    def encode(self) -> bytes:
        out = pa.BufferOutputStream()
        pq.write_table(self.table.cast(_SCHEMA), out, compression="zstd")
        return bytes(out.getvalue())

    @classmethod
    def decode(cls, data: bytes, path: str) -> Self:
        try:
            table = pq.read_table(pa.BufferReader(data))
            version = int((table.schema.metadata or {})[_VERSION_KEY])
            if version <= FORMAT_VERSION:
                return cls(table.select(_SCHEMA.names).cast(_SCHEMA))
        except (pa.ArrowException, KeyError, ValueError) as error:
            raise StateError(
                f"{path} cannot be read as a list of suppressed people: {error}. It was damaged or "
                "edited; restore it from a backup, or remove it: then the version before counts."
            ) from None
        raise StateError(
            f"{path} has format version {version}; this release knows up to {FORMAT_VERSION}. "
            "A newer release of datalake has worked on this lake: upgrade this one."
        )


def _matching(kind: IdKind, source_id: str) -> pc.Expression:
    return (pc.field("kind") == kind.value) & (pc.field("source_id") == source_id)
