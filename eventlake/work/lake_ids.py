"""The message ids that tables hold, read from their files: what the id index is made from."""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.columnar.id_hashes import hash_id
from eventlake.rules.names import MESSAGE_ID, RECEIVED_AT
from eventlake.settings.models.models import Source
from eventlake.state.id_index import SCHEMA, UNKNOWN
from eventlake.storage import Storage, StoredFile


def read_ids(storage: Storage, source: Source, files: Iterable[StoredFile]) -> pa.Table:
    """Hashes of the message ids in some data files, with the times they were received."""
    names = [c.name(source.naming) for c in (MESSAGE_ID, RECEIVED_AT)]
    parts = storage.each(lambda file: _ids(storage, file, *names), list(files))
    return pa.concat_tables([SCHEMA.empty_table(), *parts])


def _ids(storage: Storage, file: StoredFile, id_column: str, received_column: str) -> pa.Table:
    with storage.open_input(file.path) as stream:
        rows = pq.ParquetFile(stream, pre_buffer=True).read(columns=[id_column, received_column])
    hashes = pa.array([hash_id(text) for text in rows[id_column].to_pylist()], pa.binary(16))
    received = rows[received_column].cast(pa.int64()).combine_chunks()
    unknown = pa.repeat(pa.scalar(UNKNOWN, pa.uint32()), len(hashes))
    columns = {"id": hashes, "received": received, "payload": unknown}
    return pa.table(columns, schema=SCHEMA)
