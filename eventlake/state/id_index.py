"""The id index: sorted hashes of the message ids in the lake, by received day and bucket.

An Arrow file has one record batch for each bucket of its range, so that a task reads only its own
buckets. The index is a cache: missing parts are rebuilt from the `message_id` columns.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eventlake.columnar.id_hashes import BUCKETS, bucket_numbers, words
from eventlake.rules import paths
from eventlake.rules.errors import DamagedFile
from eventlake.rules.partitions import DAY_US
from eventlake.state.manifest import IndexFile
from eventlake.storage import Storage

SCHEMA = pa.schema([("id", pa.binary(16)), ("received", pa.int64()), ("payload", pa.uint32())])
UNKNOWN = 0
"""The payload hash of events without their raw line, in an index rebuilt from the tables."""


Buckets = tuple[int, int]
ALL: Buckets = (0, BUCKETS)


def day_of(received_us: int) -> str:
    return str(np.datetime64(received_us, "us").astype("datetime64[D]"))


def write_index(
    storage: Storage,
    source_id: str,
    unit: str,
    ids: pa.Table,
    buckets: Buckets = ALL,
    folder: str | None = None,
) -> Iterator[IndexFile]:
    """Write ids (columns of `SCHEMA`) as one file for each day they were received.

    They belong to the index of the source; a dry run uses a folder of its own.
    """
    folder = folder or paths.id_indexes(source_id)
    days = ids["received"].to_numpy() // DAY_US
    for day in np.unique(days):
        name = day_of(int(day) * DAY_US)
        of_day = ids.filter(pa.array(days == day)).sort_by("id").combine_chunks()
        path = f"{folder}/day={name}/{unit}-{buckets[0]:02d}.arrow"
        numbers = bucket_numbers(of_day["id"].combine_chunks())
        edges = np.searchsorted(numbers, np.arange(buckets[0], buckets[1] + 1))
        with storage.open_output(path) as out:
            with pa.ipc.new_file(out, SCHEMA) as writer:
                for start, end in pairwise(edges):
                    part = of_day.slice(start, end - start).combine_chunks()
                    batches = part.to_batches() or [pa.RecordBatch.from_pylist([], schema=SCHEMA)]
                    writer.write_batch(batches[0])
            size = out.tell()
        yield IndexFile(name, path, len(of_day), buckets, size)


def _read(storage: Storage, file: IndexFile, buckets: Buckets) -> list[pa.RecordBatch]:
    first, end = max(buckets[0], file.buckets[0]), min(buckets[1], file.buckets[1])
    if 4 * (end - first) >= file.buckets[1] - file.buckets[0]:
        # Each batch costs one or two requests; a large part of a file is read at once.
        data = storage.read(file.path)
        if data is None:
            raise FileNotFoundError(file.path)
        source = pa.BufferReader(data)
    else:
        source = storage.open_input(file.path)
    try:
        with source, pa.ipc.open_file(source) as reader:
            return [reader.get_batch(n - file.buckets[0]) for n in range(first, end)]
    except pa.ArrowInvalid as error:
        raise DamagedFile(
            f"{file.path} cannot be read as an id index: {error}. It was damaged or edited. "
            "Remove it: the next run makes it again from the data files."
        ) from None


def whole_files(storage: Storage, files: Iterable[IndexFile]) -> set[str]:
    """The paths of existing files with the size they were written with."""
    sizes = {file.path: file.bytes for file in files}
    folders = list({path.rpartition("/")[0] for path in sizes})
    found = [file for there in storage.each(storage.files, folders) for file in there]
    return {f.path for f in found if f.size and sizes.get(f.path) in (f.size, 0)}


class IndexEntries(NamedTuple):
    """Ids (as words), times of receipt, and hashes of payloads."""

    ids: np.ndarray
    received: np.ndarray
    payloads: np.ndarray


def read_index(
    storage: Storage, files: Iterable[IndexFile], buckets: Buckets = ALL
) -> IndexEntries:
    """The content of some buckets of some files."""
    parts = [pa.RecordBatch.from_pylist([], SCHEMA)]
    wanted = [f for f in files if f.buckets[0] < buckets[1] and f.buckets[1] > buckets[0]]
    with ThreadPoolExecutor(16) as pool:  # reading from S3 is mostly waiting
        for found in pool.map(lambda file: _read(storage, file, buckets), wanted):
            parts += found
    return IndexEntries(
        np.concatenate([words(part["id"]) for part in parts]),
        np.concatenate([part["received"].to_numpy() for part in parts]),
        np.concatenate([part["payload"].to_numpy() for part in parts]),
    )
