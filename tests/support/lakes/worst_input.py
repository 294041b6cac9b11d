"""Stages and loads the worst input of a kind in this process, and prints the peak of its memory.

`python -m tests.support.lakes.worst_input <kind> <megabytes of the task> <megabytes of input>`
"""

import gzip
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from eventlake.load.blobs import Blob, BlobKind, deal_out, file_number, rows_key
from eventlake.load.seen import Seen
from eventlake.load.stage import stage
from eventlake.load.stage_job import RawFile, StageJob
from eventlake.load.task_memory import TaskMemory
from eventlake.load.write import LoadJob, load
from eventlake.rules.names import Naming
from eventlake.rules.partitions import DatePartition
from eventlake.runs.resolve import resolve
from eventlake.settings.models import Limits, Source
from eventlake.storage import LocalStorage
from spark_resources.dataflow.blob_store import BlobStore


def _event(number: int, fields: str = "", kind: str = "page", more: str = "") -> str:
    """Events of one hour."""
    time = f"2026-10-01T07:{number // 60 % 60:02}:{number % 60:02}Z"
    head = f'"type":"{kind}","messageId":"{number}","receivedAt":"{time}"'
    return f'{{{head},{more}"p":{{{fields}}}}}\n'


def _huge_lines() -> Iterator[str]:
    text = "é\\u0001x" * 110_000
    for n in count():
        yield _event(n, f'"text":"{text}"')


def _tiny_lines() -> Iterator[str]:
    for n in count():
        yield "\n" * 1000 + _event(n)


def _short_values() -> Iterator[str]:
    for n in count():
        yield _event(n, ",".join(f'"{k}":1' for k in range(1_000)))


def _odd_lines() -> Iterator[str]:
    for n in count():
        yield _event(n, ",".join(f'"{k}":1' for k in range(1_000)), kind="PAGE")


def _spellings() -> Iterator[str]:
    """Every event has other fields, of the same columns."""
    for n in count():
        yield _event(n, ",".join(f'"a{k}{"-" * (n % 1_000)}":1' for k in range(99)))


def _tables() -> Iterator[str]:
    """Tables with many columns, and events of tables beyond the limit."""
    for n in count():
        fields = ",".join(f'"f{n % 1_200}_{k}":1' for k in range(200))
        yield _event(n, fields, kind="track", more=f'"event":"Event {n % 1_200}",')


def _decimals() -> Iterator[str]:
    """A seventh of all columns has a value of one digit in each row."""
    yield _event(0, ",".join(f'"d{k}":0.5' for k in range(1_400)))
    for n in count(1):
        yield _event(n, ",".join(f'"d{k}":1' for k in range(n % 7, 1_400, 7)))


def _rescued() -> Iterator[str]:
    """Values that lose something, with names that are longer."""
    name = "name" * 30
    yield _event(0, ",".join(f'"{name}{k}":1' for k in range(300)))
    for n in count(1):
        yield _event(n, ",".join(f'"{name}{k}":"x"' for k in range(300)))


def _rows() -> Iterator[str]:
    for n in count():
        yield _event(n)


KINDS: dict[str, Callable[[], Iterator[str]]] = {
    "huge lines": _huge_lines,
    "tiny lines": _tiny_lines,
    "short values": _short_values,
    "odd lines": _odd_lines,
    "spellings": _spellings,
    "tables": _tables,
    "decimals": _decimals,
    "rescued": _rescued,
    "rows": _rows,
}


def main(kind: str, task_memory: int, size: int) -> None:
    """Write one raw file, then do what its tasks do."""
    memory = TaskMemory.of(task_memory)
    with TemporaryDirectory() as folder:
        storage = LocalStorage(folder)
        written, lines = 0, KINDS[kind]()
        with gzip.open(Path(folder) / "raw.gz", "wt", compresslevel=1) as raw:
            while written < size << 20:
                written += raw.write(next(lines))
        file = RawFile(0, "raw.gz", (Path(folder) / "raw.gz").stat().st_size, "")
        layout, naming = DatePartition.DAY_HOUR, Naming.NATIVE
        job = StageJob(storage, naming, layout, Limits(), {}, memory=memory)
        store = BlobStore(storage, "blobs")
        blobs = store.keep(stage(job, 0, [file]))
        staged = _peak()
        with store.fetching() as fetch:
            [report] = fetch([blob for blob in blobs if blob.kind == BlobKind.SEEN])
            seen = Seen.decode(report.data)
            sizes = {rows_key(*at): size for at, size in seen.staged_bytes().items()}
            source = Source.model_validate({"id": "S1", "slug": "shop"})
            resolved = resolve(source, {}, seen.tables)
            targets = {key: f"made/{number}" for number, key in enumerate(sizes)}
            loading = LoadJob(
                storage=storage,
                schemas={table: one.schema for table, one in resolved.items()},
                targets=targets,
                locations=targets,
                duplicates=np.empty(0, np.uint64),
                raw_files=("raw.gz",),
                naming=naming,
                log_folder="log",
                operation="append",
                memory=memory,
            )
            shares = deal_out(sizes, memory.file_bytes, 2, memory.share_bytes)
            groups: dict[str, list[Blob]] = {}
            for share, blob in shares.of_all(b for b in blobs if b.kind == BlobKind.ROWS):
                groups.setdefault(share, []).append(blob)
            rows = 0
            with loading.record_log() as log:
                for share, some in groups.items():
                    found = load(
                        loading, file_number(share), shares.rows_of(share, fetch(some)), log
                    )
                    rows += sum(file.rows for file in found)
        accounted = rows + sum(sum(r.values()) for r in seen.rejected.values())
        assert accounted == seen.rows_in, (accounted, seen.rows_in)
        print(staged, _peak(), rows, seen.rows_in)


def _peak() -> int:
    """The peak of resident memory in megabytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
