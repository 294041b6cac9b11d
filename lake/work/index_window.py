"""Which index files tell a unit what the lake has within the dedup window."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from lake.dedup.ids import hash_id
from lake.dedup.index import SCHEMA, write_index
from lake.names import STANDARD_COLUMNS
from lake.state.manifest import IndexFile

if TYPE_CHECKING:
    from lake.work.process import UnitWork


@dataclass(frozen=True, slots=True)
class IndexWindow:
    """Index files to compare with; those made here; days whose old files are no longer valid."""

    files: tuple[IndexFile, ...]
    made: tuple[IndexFile, ...] = ()
    replaced: tuple[str, ...] = ()


def index_window(work: "UnitWork", days: Sequence[str]) -> IndexWindow:
    """The index of the days around the rows, without the rows that a replay is to replace."""
    window = work.unit.window
    replayed = [f"{window.start:%Y-%m-%d}"] if window else []
    around = _around([*days, *replayed], work.context.source.dedup_days)
    files: list[IndexFile] = []
    made: list[IndexFile] = []
    replaced: list[str] = []
    for day in around:
        known = work.state.index.get(day, ())
        if day in replayed or not all(work.context.storage.exists(f.path) for f in known):
            anew = list(_made_from_lake(work, day))
            made += anew
            replaced.append(day)
            known = tuple(anew)
        files += known
    return IndexWindow(tuple(files), tuple(made), tuple(replaced))


def _around(days: Sequence[str], reach: int) -> list[str]:
    found = {
        str(date.fromisoformat(day) + timedelta(days=offset))
        for day in days
        for offset in range(-reach, reach + 1)
    }
    return sorted(found)


def _made_from_lake(work: "UnitWork", day: str) -> Iterable[IndexFile]:
    """The ids of a day from the tables' own columns, but for partitions the unit replaces."""
    source, storage, unit = work.context.source, work.context.storage, work.unit
    names = {c.field: c.name(source.naming) for c in STANDARD_COLUMNS}
    columns = [names["messageId"], names["receivedAt"]]
    parts = [SCHEMA.empty_table()]
    for table, schema in work.tables.items():
        for partition in work.context.catalog.partitions(schema.database, schema.name, (day, day)):
            start = source.date_partition.parse(partition.values)
            chosen = unit.tables is None or table in unit.tables
            if unit.window and chosen and unit.window.start <= start < unit.window.end:
                continue
            for file in storage.files(partition.location):
                rows = pq.read_table(storage.full(file.path), columns, filesystem=storage.fs)
                parts.append(_ids(rows, *columns))
    ids = pa.concat_tables(parts)
    if len(ids):
        yield from write_index(storage, source.id, f"{work.name}-remade", ids)


def _ids(rows: pa.Table, id_column: str, received_column: str) -> pa.Table:
    hashes = pa.array([hash_id(text) for text in rows[id_column].to_pylist()], pa.binary(16))
    received = rows[received_column].cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    return pa.table({"id": hashes, "received": received.combine_chunks()}, schema=SCHEMA)
