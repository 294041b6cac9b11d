"""Where all tasks share a disk, batches lie there, and what travels is where each one is.

Through Java a batch is copied some ten times. On a cluster that is what it takes to bring it to
another machine; on one machine it is half of the time.
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


class Spot(msgspec.Struct, array_like=True):
    """Some bytes of a file on the shelf."""

    file: str
    start: int
    size: int


_decode = msgspec.msgpack.Decoder(Spot).decode


@dataclass(frozen=True, slots=True)
class Shelf:
    """A folder that all tasks see."""

    folder: str

    @classmethod
    def on_this_machine(cls) -> "Shelf":
        """In the folder that Spark has for files of its session, and removes at its end."""
        return cls(os.path.join(SparkFiles.getRootDirectory(), f"batches-{uuid4().hex}"))

    def keep(self, blobs: Iterable[Blob]) -> list[Blob]:
        """Put what a task has made on the shelf; if it is tried again, into another file."""
        name = uuid4().hex
        os.makedirs(self.folder, exist_ok=True)
        kept: list[Blob] = []
        with (Path(self.folder) / name).open("wb") as file:
            for blob in blobs:
                spot = Spot(name, file.tell(), len(blob.data))
                file.write(blob.data)
                kept.append(blob._replace(data=msgspec.msgpack.encode(spot)))
        return kept

    @contextmanager
    def fetching(self) -> Iterator[Fetch]:
        """Take batches from the shelf."""
        files: dict[str, int] = {}

        def fetch(blob: Blob) -> Blob:
            spot = _decode(blob.data)
            if spot.file not in files:
                files[spot.file] = os.open(Path(self.folder) / spot.file, os.O_RDONLY)
            return blob._replace(data=os.pread(files[spot.file], spot.size, spot.start))

        try:
            yield fetch
        finally:
            for file in files.values():
                os.close(file)

    def clear(self) -> None:
        """Remove all that lies there."""
        shutil.rmtree(self.folder, ignore_errors=True)


def size(kept: Blob) -> int:
    """The bytes of a batch on the shelf."""
    return _decode(kept.data).size
