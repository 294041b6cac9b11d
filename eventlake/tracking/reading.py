"""Reading a record log: by status, by identifier, in order or as a sample; never all at once."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventlake.load.record_log import SCHEMA, BatchType
from eventlake.rules.errors import UsageError
from eventlake.storage import LocalStorage, Storage
from eventlake.tracking.logs import LogFile

BATCH = 5_000
"""Records held at once: a payload may be as long as the longest line."""

_WORDS = {
    **{batch_type.value: {batch_type} for batch_type in BatchType},
    "loaded": {BatchType.LOADED},
    "suppressed": {BatchType.SUPPRESSED},
    "skipped": {BatchType.SKIPPED},
    **{
        status.lower(): {batch_type for batch_type in BatchType if batch_type.status == status}
        for status in ("succeeded", "rejected", "NULL", "DUPLICATE")
    },
}


def batch_types(words: Collection[str]) -> frozenset[BatchType]:
    """The batch types that some statuses (or batch types by name) mean; all for none."""
    if not words:
        return frozenset(BatchType)
    if unknown := [word for word in words if word.lower() not in _WORDS]:
        raise UsageError(
            f"{unknown[0]!r} is no status. Allowed are succeeded, rejected, NULL and DUPLICATE, "
            "and of the rejected ones alone suppressed, skipped or records_rejected (all others)."
        )
    return frozenset(t for word in words for t in _WORDS[word.lower()])


def count(storage: Storage, files: Iterable[LogFile]) -> dict[BatchType, int]:
    """How many records there are of each type."""
    counts: dict[BatchType, int] = {}
    listed = list(files)
    for file, rows in zip(listed, storage.each(lambda f: f.rows(storage), listed), strict=True):
        counts[file.batch_type] = counts.get(file.batch_type, 0) + rows
    return counts


def read(storage: Storage, files: Iterable[LogFile]) -> Iterator[pa.Table]:
    """All records in order, a bounded number at a time."""
    for file in files:
        with storage.open_input(file.path) as stream:
            for batch in pq.ParquetFile(stream).iter_batches(BATCH):
                yield pa.Table.from_batches([batch]).cast(SCHEMA)


def first(records: Iterable[pa.Table], most: int) -> Iterator[pa.Table]:
    """No more than so many."""
    for table in records:
        yield table[:most]
        most -= min(most, len(table))
        if not most:
            return


def sample(storage: Storage, files: Sequence[LogFile], size: int) -> Iterator[pa.Table]:
    """So many records, evenly spread over all of them: the same ones every time."""
    counts = storage.each(lambda file: file.rows(storage), files)
    wanted = _spread(sum(counts), size)
    for file, rows in zip(files, counts, strict=True):
        mine, wanted = wanted[wanted < rows], wanted[wanted >= rows] - rows
        if not len(mine):
            continue
        for table in read(storage, [file]):
            here, mine = mine[mine < len(table)], mine[mine >= len(table)] - len(table)
            if len(here):
                yield table.take(pa.array(here))


def _spread(total: int, size: int) -> np.ndarray:
    """The middles of equal parts."""
    size = min(size, total)
    return (2 * np.arange(size, dtype=np.int64) + 1) * total // (2 * max(size, 1))


def search(
    storage: Storage, files: Sequence[LogFile], identifier: str
) -> list[tuple[LogFile, pa.Table]]:
    """The records with this identifier, by the files that have any, in order of the archive."""
    if not files:
        return []
    if not isinstance(storage, LocalStorage):
        found = storage.each(lambda file: _records(storage, file, identifier), files)
        return [(file, records) for file, records in zip(files, found, strict=True) if len(records)]
    return _search_folder(storage, files, identifier)


def _records(storage: Storage, file: LogFile, identifier: str) -> pa.Table:
    """Those of one file; most files are left after a look at their identifiers."""
    with storage.open_input(file.path) as stream:
        parquet = pq.ParquetFile(stream, pre_buffer=True)
        hits = pc.equal(parquet.read(["identifier"])["identifier"], identifier)
        if not pc.any(hits).as_py():
            return SCHEMA.empty_table()
        records = parquet.read().filter(hits).cast(SCHEMA)
    return records.sort_by([("raw_file", "ascending"), ("raw_line", "ascending")])


def _search_folder(
    storage: Storage, files: Sequence[LogFile], identifier: str
) -> list[tuple[LogFile, pa.Table]]:
    """By DuckDB, which reads no file whose Bloom filter says that the identifier is not in it.

    Arrow's own reader does not know those filters, and takes six times as long; but DuckDB knows
    no store other than folders without extensions that it would have to download.
    """
    columns = ", ".join(f'"{name}"' for name in SCHEMA.names)
    with closing(duckdb.connect()) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = connection.sql(
            f"SELECT filename, {columns} FROM read_parquet(?, filename = true) "
            "WHERE identifier = ? ORDER BY raw_file, raw_line",
            params=[[storage.full(file.path) for file in files], identifier],
        ).to_arrow_table()
    records = found.select(SCHEMA.names).cast(SCHEMA)
    hits = set(found["filename"].to_pylist())
    return [
        (file, records.filter(pc.equal(found["filename"], storage.full(file.path))))
        for file in files
        if storage.full(file.path) in hits
    ]
