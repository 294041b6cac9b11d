"""Loads all compiled code of a task from its cache or, the first time, compiles it."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from eventlake.columnar.parquet import writer
from eventlake.load.blobs import BlobKind
from eventlake.load.stage import stage
from eventlake.load.stage_job import RawFile, StageJob
from eventlake.load.staged import StagedTable
from eventlake.load.typed_rows import typed_rows
from eventlake.rules.names import Naming
from eventlake.rules.partitions import DatePartition
from eventlake.rules.types import Column, LakeType, TableSchema
from eventlake.settings.models import Limits
from eventlake.storage import LocalStorage

_EVENT = b'{"type":"page","messageId":"m","receivedAt":"2026-10-01T07:00:00Z"}\n'


def warm_up() -> None:
    """Stage and cast one event of the fast reader and one of the careful reader."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "raw").write_bytes(_EVENT + _EVENT.replace(b"page", b"PAGE"))
        storage = LocalStorage(folder)
        job = StageJob(storage, Naming.NATIVE, DatePartition.DAY_HOUR, Limits(), {})
        blobs = list(stage(job, 0, [RawFile(0, "raw", 0, "")]))
    names = {"type": "/type", "message_id": "/messageId", "received_at": "/receivedAt"}
    columns = tuple(Column(name, LakeType.STRING, at) for name, at in names.items())
    rows = [blob for blob in blobs if blob.kind == BlobKind.ROWS]
    table = StagedTable.of(rows, np.empty(0, np.uint64))
    if table is not None:
        typed_rows(table, TableSchema("page", "", "page", "page", columns))
    writer.warm_up()
