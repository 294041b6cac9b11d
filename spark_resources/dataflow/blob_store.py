"""Staged blobs in files of a storage that all tasks can read: tasks exchange only byte ranges.

On one machine the files are in a temporary folder, on a cluster in the staging folder of the run.
Blobs never pass through the JVM, and an executor that is lost takes none of them with it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import msgspec
import pyarrow as pa

from eventlake.load.blobs import Blob
from eventlake.storage import Storage
from eventlake.storage.local import unique_name

Fetch = Callable[[Sequence[Blob]], list[Blob]]


class BlobRange(msgspec.Struct, array_like=True):
    """A range of bytes in a file of the store."""

    file: str
    start: int
    size: int


_decode = msgspec.msgpack.Decoder(BlobRange).decode


@dataclass(frozen=True, slots=True)
class BlobStore:
    """A folder of a storage."""

    storage: Storage
    folder: str

    def keep(self, blobs: Iterable[Blob]) -> list[Blob]:
        """Store the blobs of a task in one file; the returned blobs have ranges as data.

        Each attempt of a task writes another file.
        """
        name = unique_name()
        kept: list[Blob] = []
        start = 0
        with self.storage.open_output(self._path(name)) as file:
            for blob in blobs:
                file.write(blob.data)
                found = BlobRange(name, start, len(blob.data))
                start += found.size
                kept.append(blob._replace(data=msgspec.msgpack.encode(found)))
        return kept

    def size(self, kept: Blob) -> int:
        """The size of a stored blob in bytes."""
        return _decode(kept.data).size

    @contextmanager
    def fetching(self) -> Iterator[Fetch]:
        """Yield a function that reads blobs, in parallel on remote storage."""
        files: dict[str, pa.NativeFile] = {}

        def read(blob: Blob) -> Blob:
            found = _decode(blob.data)
            return blob._replace(data=files[found.file].read_at(found.size, found.start))

        def fetch(blobs: Sequence[Blob]) -> list[Blob]:
            new = [*{_decode(blob.data).file for blob in blobs} - files.keys()]
            opened = self.storage.each(lambda name: self.storage.open_input(self._path(name)), new)
            files.update(zip(new, map(open_files.enter_context, opened), strict=True))
            return self.storage.each(read, blobs)

        with ExitStack() as open_files:
            yield fetch

    def clear(self) -> None:
        """Delete all blobs."""
        self.storage.delete_folder(self.folder)

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}"
