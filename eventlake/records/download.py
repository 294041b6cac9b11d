"""Records as a file of one's own: CSV, JSON lines or Parquet, by the ending of its name."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq

from eventlake.load.record_log import SCHEMA
from eventlake.rules.errors import UsageError

Write = Callable[[pa.Table], None]


def check_target(path: Path) -> None:
    """Refuse a file that cannot be written, before anything is read."""
    if path.suffix.lower() not in _WRITERS:
        raise UsageError(
            f"{path} ends in {path.suffix or 'nothing'!r}; the ending says what to write: "
            f"{', '.join(_WRITERS)}."
        )
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise UsageError(f"{path} cannot be written: give a file in a folder that exists.")


def download(records: Iterable[pa.Table], path: Path) -> int:
    """Write records to a file, whole or not at all; how many they were."""
    check_target(path)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    rows = 0
    try:
        with aside.open("wb") as out, _WRITERS[path.suffix.lower()](out) as write:
            for table in records:
                write(table)
                rows += len(table)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    return rows


@contextmanager
def _csv(out: BinaryIO) -> Iterator[Write]:
    """Texts are quoted, so that an empty one is not taken for none."""
    with pc_csv.CSVWriter(out, SCHEMA) as writer:
        yield writer.write_table


@contextmanager
def _json_lines(out: BinaryIO) -> Iterator[Write]:
    def write(table: pa.Table) -> None:
        out.writelines(msgspec.json.encode(record) + b"\n" for record in table.to_pylist())

    yield write


@contextmanager
def _parquet(out: BinaryIO) -> Iterator[Write]:
    with pq.ParquetWriter(out, SCHEMA, compression="zstd", store_schema=False) as writer:
        yield writer.write_table


_WRITERS: dict[str, Callable[[BinaryIO], AbstractContextManager[Write]]] = {
    ".csv": _csv,
    ".jsonl": _json_lines,
    ".parquet": _parquet,
}
