"""A lake in a folder."""

import fcntl
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from ctypes import CDLL, get_errno
from dataclasses import dataclass
from errno import ENOENT
from pathlib import Path

import pyarrow as pa
from pyarrow import fs as pafs

from lake.clock import now
from lake.storage.base import THREADS, Change, Storage, StoredFile

_QUIET_SECONDS = 3600.0
_BUFFER = 256 << 10  # of a file that is being written: most are written at once
MANY = 500
"""Files from which on it costs less to wait for the whole disk than for each of them."""


@dataclass(frozen=True)
class LocalStorage(Storage):
    """A root folder of this machine, or of a disk that machines share."""

    uri: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "uri", str(Path(self.uri).absolute()))

    @property
    def fs(self) -> pafs.FileSystem:
        return pafs.LocalFileSystem()

    def fs_path(self, path: str) -> str:
        return self.full(path)

    def read(self, path: str) -> bytes | None:
        try:
            with open(self.full(path), "rb") as stream:
                return stream.read()
        except FileNotFoundError:
            return None

    def read_many(self, paths: Sequence[str]) -> list[bytes | None]:
        # Threads cost more than they save, as long as a disk does not let one wait.
        return [self.read(path) for path in paths]

    def open_input(self, path: str) -> pa.NativeFile:
        return self.fs.open_input_file(self.full(path))

    def open_stream(self, path: str) -> pa.NativeFile:
        return self.fs.open_input_stream(self.full(path), compression=None)

    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        # Spark may run a task twice at the same time: each writes a file of its own.
        full = self._ready(path)
        aside = _aside(full)
        try:
            with open(aside, "wb", buffering=_BUFFER) as out:
                yield out
            os.replace(aside, full)
        except BaseException:
            Path(aside).unlink(missing_ok=True)
            raise

    def write(self, path: str, data: bytes) -> None:
        self._write_aside(path, data, os.replace)

    def create(self, path: str, data: bytes) -> bool:
        try:
            # A link, unlike O_EXCL and a write after it, never leaves a half-written winner.
            self._write_aside(path, data, os.link)
        except FileExistsError:
            return False
        return True

    def update(self, path: str, change: Change) -> None:
        folder = os.path.dirname(self._ready(path))
        # The system frees the lock when its holder dies.
        handle = os.open(f"{folder}/.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            changed = change(self.read(path))
            if changed is not None:
                self._write_aside(path, changed, os.replace)
        finally:
            os.close(handle)

    def _write_aside(self, path: str, data: bytes, put: Callable[[str, str], None]) -> None:
        full = self._ready(path)
        aside = _aside(full)
        try:
            with open(aside, "wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            put(aside, full)
        finally:
            Path(aside).unlink(missing_ok=True)

    def _ready(self, path: str) -> str:
        """The full path, in a folder that is there."""
        full = self.full(path)
        folder = os.path.dirname(full)
        try:
            os.mkdir(folder)  # mostly there is one above it
        except FileExistsError:
            pass
        except FileNotFoundError:
            os.makedirs(folder, exist_ok=True)
        return full

    def exists(self, path: str) -> bool:
        return os.path.exists(self.full(path))

    def files(self, folder: str, *, recursive: bool = True) -> list[StoredFile]:
        return sorted(
            (
                StoredFile(self._relative(info.path), info.size, str(info.mtime_ns), info.mtime_ns)
                for info in self._infos(folder, recursive)
                if info.is_file and not info.base_name.startswith(".")
            ),
            key=lambda file: file.path,
        )

    def folders(self, folder: str) -> list[str]:
        return sorted(i.base_name for i in self._infos(folder, False) if not i.is_file)

    def _infos(self, folder: str, recursive: bool) -> Iterator[pafs.FileInfo]:
        selector = pafs.FileSelector(self.full(folder), recursive=recursive, allow_not_found=True)
        return iter(self.fs.get_file_info(selector))

    def _relative(self, full: str) -> str:
        return full[len(self.uri) + 1 :]

    def place(self, source: str, target: str) -> None:
        if self.exists(target):
            return
        full = self._ready(target)
        try:
            os.replace(self.full(source), full)
        except FileNotFoundError:
            if not self.exists(target):  # else another run has just done it
                raise

    def settle(self, paths: Sequence[str]) -> None:
        by_folder: dict[str, set[str]] = {}
        for path in paths:
            folder, name = os.path.split(self.full(path))
            by_folder.setdefault(folder, set()).add(name)
        for folder, names in by_folder.items():
            _require_whole(folder, names)
        if len(paths) > MANY and sync_all(self.uri):
            return
        files = [self.full(path) for path in paths]
        with ThreadPoolExecutor(THREADS) as pool:  # a disk does many of these as one
            list(pool.map(_onto_the_disk, [*files, *by_folder]))

    def copy(self, source: str, target: str) -> None:
        full = self._ready(target)
        shutil.copyfile(self.full(source), full)
        _onto_the_disk(full)

    def delete(self, path: str) -> None:
        Path(self.full(path)).unlink(missing_ok=True)

    def delete_folder(self, folder: str) -> None:
        shutil.rmtree(self.full(folder), ignore_errors=True)

    def tidy(self, folder: str) -> None:
        # Not one that was changed just now: somebody may be about to write into it.
        before = now().timestamp() - _QUIET_SECONDS
        for at, _, _ in os.walk(self.full(folder), topdown=False):
            with suppress(OSError):  # there is something in it, or it is gone
                if os.stat(at).st_mtime < before:
                    os.rmdir(at)

    def abandon(self, folder: str, run_id: str) -> None:
        """What a run was writing here is a file like others: there is nothing to free."""


def _aside(full: str) -> str:
    """Where a file is written until it is whole: in the same folder, and hidden."""
    folder, name = os.path.split(full)
    return f"{folder}/.{name}.{uuid.uuid4().hex}"


def _require_whole(folder: str, names: set[str]) -> None:
    """Raise if one of these files is not there; remove what killed tasks have left of them."""
    there = os.listdir(folder)
    for missing in names.difference(there):
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), f"{folder}/{missing}")
    for left in there:
        if left.startswith(".") and left[1:].rpartition(".")[0] in names:
            Path(folder, left).unlink(missing_ok=True)


def sync_all(at: str) -> bool:
    """All that was written to this disk onto it, by one call; False where there is no such call."""
    sync = getattr(CDLL(None, use_errno=True), "syncfs", None)  # Linux has it
    if sync is None:
        return False
    handle = os.open(at, os.O_RDONLY)
    try:
        if sync(handle):
            raise OSError(get_errno(), f"{os.strerror(get_errno())}: {at}")
    finally:
        os.close(handle)
    return True


def _onto_the_disk(full: str) -> None:
    """Not only into the memory of the system."""
    handle = os.open(full, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
