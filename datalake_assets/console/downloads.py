"""Downloads: records and answers of SQL as CSV, JSON lines or Parquet, streamed from a file."""

import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from eventlake.records.logs import download

TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}
_BYTES = 1 << 20


@dataclass(frozen=True)
class Download:
    """A file for the browser; its name has no character that a header could not have."""

    name: str
    media_type: str
    content: Iterator[bytes]


def as_file(tables: Iterable[pa.Table], schema: pa.Schema, name: str, kind: str) -> Download:
    """All rows in a file that is gone once it was sent; nothing holds all of them in memory."""
    handle, path = tempfile.mkstemp(suffix=f".{kind}")
    os.close(handle)
    try:
        download(tables, Path(path), schema)
        content = _sent(path)
        next(content)  # opens the file, which can be removed then
    finally:
        os.unlink(path)
    return Download(f"{_plain(name)}.{kind}", TYPES[kind], content)


def _sent(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        yield b""
        while data := file.read(_BYTES):
            yield data


def _plain(name: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in name)
