"""The lake's files, addressed by paths relative to its root, wherever they lie."""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
from pyarrow import fs as pafs

from eventlake.rules.errors import InvalidSetting


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file below the root; `stamp` tells whether it changed (modification time or ETag)."""

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
"""From what a file holds (None: there is none) to what it is to hold (None: leave it)."""

THREADS = 16


class Storage(ABC):
    """The few operations needed of a store; travels to Spark tasks without any secret."""

    uri: str

    @property
    @abstractmethod
    def fs(self) -> pafs.FileSystem:
        """The store as Arrow reads it; ask anew for each use, since what opens it may expire."""

    @abstractmethod
    def fs_path(self, path: str) -> str:
        """The path as `fs` knows it."""

    def full(self, path: str) -> str:
        """The path as other programs know it."""
        return f"{self.uri}/{path}" if path else self.uri

    def each(self, do: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Do something for each, in order; many at once on a store that lets one wait."""
        return [do(item) for item in items]

    @abstractmethod
    def read(self, path: str) -> bytes | None:
        """The content of a file, or None where there is none."""

    def read_many(self, paths: Sequence[str]) -> list[bytes | None]:
        if len(paths) < 2:
            return [self.read(path) for path in paths]
        with ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(self.read, paths))

    @abstractmethod
    def open_input(self, path: str) -> pa.NativeFile:
        """For reading parts of a file, in any order."""

    @abstractmethod
    def open_stream(self, path: str) -> pa.NativeFile:
        """The bytes as they lie there, from the first on: what is gzipped stays gzipped."""

    @abstractmethod
    def open_output(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """For files that no reader looks at before they are published; others use `write`.

        A block that fails leaves nothing behind.
        """

    def write_unique(self, path: str, data: bytes | memoryview) -> None:
        """Write a file, like `open_output`, to a path that nobody else writes to.

        Where this fails there may be a part of it, of which nobody is told.
        """
        with self.open_output(path) as out:
            out.write(data)

    @abstractmethod
    def write(self, path: str, data: bytes) -> None:
        """Put a file in place at once: readers see the old content or the new, never a part."""

    @abstractmethod
    def create(self, path: str, data: bytes) -> bool:
        """Put a file in place only if there is none; False if there is. Whole or not at all."""

    def create_all(self, files: Sequence[tuple[str, bytes]]) -> list[bool]:
        """Create several files, each for itself; of each, whether it was."""
        return self.each(lambda file: self.create(*file), files)

    @abstractmethod
    def update(self, path: str, change: Change) -> None:
        """Read a file, change it and put it back: no change that another makes is lost.

        `change` may be called again, with what another has written in the meantime.
        """

    def update_all(self, changes: Sequence[tuple[str, Change]]) -> None:
        """Update several files, each for itself."""
        self.each(lambda one: self.update(*one), changes)

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether there is such a file, or such a folder; an empty folder may be none."""

    @abstractmethod
    def files(self, folder: str, *, recursive: bool = True) -> list[StoredFile]:
        """All files below a folder, by path; hidden ones (ours, half-written) are left out."""

    @abstractmethod
    def folders(self, folder: str) -> list[str]:
        """The names of the folders directly below a folder."""

    @abstractmethod
    def move_into_place(self, source: str, target: str) -> None:
        """Bring a written file to its published path; done already is done.

        What becomes of the written one is up to the store: clear its folder when all is done.
        """

    def move_all_into_place(self, moves: Sequence[tuple[str, str]]) -> None:
        """Place several files, each given by where it is and where it belongs."""
        self.each(lambda move: self.move_into_place(*move), moves)

    def start_sync(self, files: int) -> None:
        """So many files are written, and will be settled before long: a disk can begin with it."""
        return

    @abstractmethod
    def make_durable(self, paths: Sequence[str]) -> None:
        """See to it that written files outlive a power cut."""

    @abstractmethod
    def copy(self, source: str, target: str) -> None: ...

    def copy_all(self, copies: Sequence[tuple[str, str]]) -> None:
        self.each(lambda pair: self.copy(*pair), copies)

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove a file; one that is not there is fine."""

    @abstractmethod
    def delete_folder(self, folder: str) -> None:
        """Remove all below a folder, also what is half-written."""

    @abstractmethod
    def delete_empty_folders(self, folder: str) -> None:
        """Remove folders below it in which nothing is left; some stores have no such thing."""

    @abstractmethod
    def discard_partial_writes(self, folder: str, run_id: str) -> None:
        """Free what a dead run has half-written below a folder, in files named after it."""


def probe(storage: Storage, folder: str) -> str:
    """Try to write, read, list and delete in a folder; nothing of it stays."""
    below = f"{folder}/check-{uuid.uuid4().hex}"
    path = f"{below}/probe"
    try:
        _require(storage.create(path, b"first"), storage, "said that a new object exists already")
        _require(
            not storage.create(path, b"second"),
            storage,
            "wrote an object twice that was to be created only if absent: two runs could commit "
            "the same manifest. Use S3 itself, or a store that honours `If-None-Match`",
        )
        _require(storage.read(path) == b"first", storage, "gave back other bytes than were written")
        storage.write(path, b"third")
        found = [file.path for file in storage.files(below)]
        _require(found == [path], storage, "does not list an object that was just written")
    finally:
        storage.delete_folder(below)
    return f"{storage.full(folder)}/ can be written, read, listed and cleared"


def _require(holds: bool, storage: Storage, otherwise: str) -> None:
    if not holds:
        raise InvalidSetting(
            f"Data lake has invalid configuration for `storage`: {storage.uri} {otherwise}."
        )
