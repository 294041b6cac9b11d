"""What the files of a partition say of themselves."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.catalog.base import CatalogPartition
from eventlake.storage import Storage, StoredFile


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file as its footer tells it, or why it cannot be read."""

    name: str
    bytes: int
    columns: pa.Schema | None = None
    rows: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class LookedInto:
    """A partition and the files in its folder."""

    partition: CatalogPartition
    files: tuple[DataFile, ...]


def look_into(storage: Storage, partitions: Sequence[CatalogPartition]) -> list[LookedInto]:
    return storage.each(partial(_looked_into, storage), partitions)


def _looked_into(storage: Storage, partition: CatalogPartition) -> LookedInto:
    files = storage.files(partition.location, recursive=False)
    return LookedInto(partition, tuple(_footer(storage, file) for file in files))


def _footer(storage: Storage, file: StoredFile) -> DataFile:
    try:
        with storage.open_input(file.path) as stream:
            footer = pq.read_metadata(stream)
        columns = footer.schema.to_arrow_schema()
    except (pa.ArrowException, OSError) as error:
        return DataFile(file.name, file.size, problem=str(error).splitlines()[0])
    return DataFile(file.name, file.size, columns, footer.num_rows)
