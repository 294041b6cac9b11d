"""A store of staged batches on a disk that all tasks share; tasks exchange positions in its files.

Java copies a batch about ten times. A cluster needs that to move it to another machine; on one
machine it would take half of the time.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import msgspec
from pyspark import SparkFiles

from eventlake.load.blobs import Blob

Fetch = Callable[[Blob], Blob]


class BlobRange(msgspec.Struct, array_like=True):
    """A range of bytes in a file of the store."""

    file: str
    start: int
    size: int


_decode = msgspec.msgpack.Decoder(BlobRange).decode


@dataclass(frozen=True, slots=True)
class BlobStore:
    """A folder that all tasks can read."""

    folder: str

    @classmethod
    def on_this_machine(cls) -> "BlobStore":
        """In the folder for files of the Spark session, which Spark removes at its end."""
        return cls(os.path.join(SparkFiles.getRootDirectory(), f"batches-{uuid4().hex}"))

    def keep(self, blobs: Iterable[Blob]) -> list[Blob]:
        """Store the blobs of a task. A retry writes another file."""
        name = uuid4().hex
        os.makedirs(self.folder, exist_ok=True)
        kept: list[Blob] = []
        with (Path(self.folder) / name).open("wb") as file:
            for blob in blobs:
                found = BlobRange(name, file.tell(), len(blob.data))
                file.write(blob.data)
                kept.append(blob._replace(data=msgspec.msgpack.encode(found)))
        return kept

    @contextmanager
    def fetching(self) -> Iterator[Fetch]:
        """Yield a function that reads blobs."""
        files: dict[str, int] = {}

        def fetch(blob: Blob) -> Blob:
            found = _decode(blob.data)
            if found.file not in files:
                files[found.file] = os.open(Path(self.folder) / found.file, os.O_RDONLY)
            return blob._replace(data=os.pread(files[found.file], found.size, found.start))

        try:
            yield fetch
        finally:
            for file in files.values():
                os.close(file)

    def clear(self) -> None:
        """Remove all blobs."""
        shutil.rmtree(self.folder, ignore_errors=True)


def size(kept: Blob) -> int:
    """The size of a stored blob in bytes."""
    return _decode(kept.data).size
