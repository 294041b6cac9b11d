"""Where all tasks share a disk, batches lie there, and Spark moves only where each one is.

Through Java a batch is copied some ten times. On a cluster that is what it takes to bring it to
another machine; on one machine it is half of the time.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import msgspec
from pyspark import SparkFiles

from lake.staging.blob import Blob, BlobKind

Keep = Callable[[Blob], Blob]
Fetch = Callable[[Blob], Blob]


class Spot(msgspec.Struct, array_like=True):
    """Some bytes of a file on the shelf."""

    file: str
    start: int
    size: int


_decode = msgspec.msgpack.Decoder(Spot).decode


@dataclass(frozen=True, slots=True)
class Shelf:
    """A folder that all tasks see; without one, batches travel as they are."""

    folder: str | None = None

    @classmethod
    def on_this_machine(cls) -> "Shelf":
        """In the folder that Spark has for files of its session, and removes at its end."""
        return cls(os.path.join(SparkFiles.getRootDirectory(), f"batches-{uuid4().hex}"))

    @contextmanager
    def keeping(self) -> Iterator[Keep]:
        """Put the batches of a task on the shelf; if it is tried again, into another file."""
        if self.folder is None:
            yield lambda blob: blob
            return
        name = uuid4().hex
        os.makedirs(self.folder, exist_ok=True)
        with (Path(self.folder) / name).open("wb") as file:

            def keep(blob: Blob) -> Blob:
                if blob.kind == BlobKind.SEEN:
                    return blob
                spot = Spot(name, file.tell(), len(blob.data))
                file.write(blob.data)
                return blob._replace(data=msgspec.msgpack.encode(spot))

            yield keep

    @contextmanager
    def fetching(self) -> Iterator[Fetch]:
        """Take batches from the shelf."""
        files: dict[str, int] = {}

        def fetch(blob: Blob) -> Blob:
            spot = _decode(blob.data)
            if spot.file not in files:
                files[spot.file] = os.open(Path(self.folder or "") / spot.file, os.O_RDONLY)
            return blob._replace(data=os.pread(files[spot.file], spot.size, spot.start))

        try:
            yield fetch if self.folder is not None else lambda blob: blob
        finally:
            for file in files.values():
                os.close(file)

    def clear(self) -> None:
        """Remove all that lies there."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
