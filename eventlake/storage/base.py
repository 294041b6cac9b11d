"""The storage interface: files addressed by paths relative to a root, or by full paths below it."""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
from pyarrow import fs as pafs

from eventlake.rules.errors import InvalidSetting


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file below the root; `stamp` (modification time or ETag) changes with its content."""

    path: str
    size: int
    stamp: str
    modified_ns: int = 0

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


T = TypeVar("T")
R = TypeVar("R")
Change = Callable[[bytes | None], bytes | None]
"""From the old content (None: no file) to the new content (None: no change)."""

THREADS = 16


class Storage(ABC):
    """Operations on a storage backend. Pickled for Spark tasks, without secrets."""

    uri: str

    @property
    @abstractmethod
    def fs(self) -> pafs.FileSystem:
        """The Arrow file system. Do not keep it: its credentials may expire."""

    @abstractmethod
    def fs_path(self, path: str) -> str:
        """The path within `fs`."""

    def full(self, path: str) -> str:
        """The path or URI for other programs."""
        return f"{self.uri}/{path}" if path else self.uri

    def each(self, do: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Call `do` for each item, in parallel on remote backends; results keep the order."""
        return [do(item) for item in items]

    @abstractmethod
    def read(self, path: str) -> bytes | None:
        """The content of a file, or None if it does not exist."""

    def read_many(self, paths: Sequence[str]) -> list[bytes | None]:
        return self.each(self.read, paths)

    @abstractmethod
    def open_input(self, path: str) -> pa.NativeFile:
        """Open a file for random access."""

    @abstractmethod
    def open_stream(self, path: str) -> pa.NativeFile:
        """Open a file for sequential reading, without decompression."""

    @abstractmethod
    def open_output(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """Open a file for writing that has no readers before publication; else use `write`.

        A failed block leaves nothing behind.
        """

    def write_unique(self, path: str, data: bytes | memoryview) -> None:
        """Write a file, like `open_output`, to a path that has no other writer.

        A failure may leave a partial file, which nothing references.
        """
        with self.open_output(path) as out:
            out.write(data)

    @abstractmethod
    def write(self, path: str, data: bytes) -> None:
        """Replace a file atomically: readers see the old content or the new, never a part."""

    @abstractmethod
    def create(self, path: str, data: bytes) -> bool:
        """Create a file atomically; return False if it exists."""

    def create_all(self, files: Sequence[tuple[str, bytes]]) -> list[bool]:
        """Create several files independently; for each, whether it was created."""
        return self.each(lambda file: self.create(*file), files)

    @abstractmethod
    def update(self, path: str, change: Change) -> None:
        """Read, change and replace a file without losing concurrent changes.

        `change` is called again if the file was modified in the meantime.
        """

    def update_all(self, changes: Sequence[tuple[str, Change]]) -> None:
        """Update several files independently."""
        self.each(lambda one: self.update(*one), changes)

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether a file or folder exists; some backends have no empty folders."""

    @abstractmethod
    def files(self, folder: str, *, recursive: bool = True) -> list[StoredFile]:
        """All files below a folder, sorted by path, without hidden (partially written) ones."""

    @abstractmethod
    def folders(self, folder: str) -> list[str]:
        """The names of the folders directly below a folder."""

    @abstractmethod
    def move_into_place(self, source: str, target: str) -> None:
        """Move a written file to its published path. Idempotent.

        Some backends copy: delete the source folder afterwards.
        """

    def move_all_into_place(self, moves: Sequence[tuple[str, str]]) -> None:
        """Move several files, each given as (source, target)."""
        self.each(lambda move: self.move_into_place(*move), moves)

    def start_sync(self, files: int) -> None:
        """Start to sync `files` written files in the background, ahead of `make_durable`."""
        return

    @abstractmethod
    def make_durable(self, paths: Sequence[str]) -> None:
        """Make sure that written files survive a power failure."""

    @abstractmethod
    def copy(self, source: str, target: str) -> None: ...

    def copy_all(self, copies: Sequence[tuple[str, str]]) -> None:
        self.each(lambda pair: self.copy(*pair), copies)

    @abstractmethod
    def delete(self, path: str) -> None:
        """Delete a file if it exists."""

    @abstractmethod
    def delete_folder(self, folder: str) -> None:
        """Delete everything below a folder, including partial writes."""

    @abstractmethod
    def delete_empty_folders(self, folder: str) -> None:
        """Delete empty folders below a folder; a no-op on backends without folders."""

    @abstractmethod
    def discard_partial_writes(self, folder: str, run_id: str) -> None:
        """Discard unfinished writes of a dead run below a folder: files named after the run."""


def probe(storage: Storage, folder: str) -> str:
    """Test writing, reading, listing and deleting in a folder; leaves nothing behind."""
    below = f"{folder}/check-{uuid.uuid4().hex}"
    path = f"{below}/probe"
    try:
        _require(
            storage.create(path, b"first"), storage, "reported that a new object exists already"
        )
        _require(
            not storage.create(path, b"second"),
            storage,
            "overwrote an object that should only be created if absent: two runs could commit "
            "the same manifest. Use S3 itself, or a store that supports `If-None-Match`",
        )
        _require(storage.read(path) == b"first", storage, "returned other bytes than were written")
        storage.write(path, b"third")
        found = [file.path for file in storage.files(below)]
        _require(found == [path], storage, "does not list an object that was just written")
    finally:
        storage.delete_folder(below)
    return f"{storage.full(folder)}/ can be written, read, listed and cleared"


def _require(holds: bool, storage: Storage, otherwise: str) -> None:
    if not holds:
        raise InvalidSetting(
            f"Eventlake has invalid configuration for `storage`: {storage.uri} {otherwise}."
        )
