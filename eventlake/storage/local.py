"""Storage in a local folder."""

import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from ctypes import CDLL, get_errno
from dataclasses import dataclass, field
from errno import ENOENT
from functools import lru_cache
from itertools import count
from pathlib import Path
from threading import get_ident

import pyarrow as pa
from pyarrow import fs as pafs

from eventlake.rules.clock import now
from eventlake.storage.base import THREADS, Change, Storage, StoredFile

_numbers = count()


def draft_path(full: str) -> str:
    """A unique temporary path for a file until it is complete."""
    folder, _, name = full.rpartition("/")
    return f"{folder}/.{name}.{unique_name()}"


def unique_name() -> str:
    """A globally unique name."""
    return f"{_mine(os.getpid())}{next(_numbers):x}"


@lru_cache(maxsize=1)
def _mine(process: int) -> str:
    """Unique per process across machines; a forked process gets its own."""
    return uuid.uuid4().hex


def open_new(full: str, private: bool = True) -> int:
    """Open a file for writing; create missing folders."""
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    mode = 0o600 if private else 0o666
    try:
        return os.open(full, flags, mode)
    except FileNotFoundError:  # rare: most folders exist
        make_folder(os.path.dirname(full), private)
        return os.open(full, flags, mode)


def make_folder(folder: str, private: bool) -> None:
    """Create a folder and those above it. Private: readable for their owner alone."""
    if os.path.isdir(folder):
        return
    make_folder(os.path.dirname(folder), private)
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700 if private else 0o777)


def discard(full: str) -> None:
    """Delete a file if it exists."""
    with suppress(FileNotFoundError):
        os.unlink(full)


def target_of_draft(name: str) -> str | None:
    """The file name that a draft was written for; None if the name is not that of a draft."""
    return name[1:].rpartition(".")[0] if name.startswith(".") else None


MANY = 500
"""Number of files above which one sync of the whole disk is faster than one per file."""


def sync_files(files: Sequence[str], folders: Sequence[str], root: str) -> None:
    """Sync files below a root, and folder entries, to disk."""
    if len(files) > MANY and sync_disk(root):
        return
    every = [*files, *folders]
    if len(every) == 1:
        sync_path(every[0])
        return
    with ThreadPoolExecutor(THREADS) as pool:  # disks combine concurrent syncs
        list(pool.map(sync_path, every))


def start_early_sync(files: int, root: str) -> None:
    """Sync many files in the background, while the thread that wrote them does other work.

    Linux reports a disk error only once, here to this sync. The thread has to call
    `finish_early_syncs` before it commits the files.
    """
    if files > MANY:
        _begun.setdefault((root, get_ident()), []).append(_ahead.submit(sync_disk, root))


def finish_early_syncs(root: str) -> None:
    """Wait for the early syncs of this thread; raise the error of one that failed."""
    for begun in _begun.pop((root, get_ident()), []):
        begun.result()


_ahead = ThreadPoolExecutor(1)
_begun: dict[tuple[str, int], list[Future[bool]]] = {}  # by root and thread


def sync_disk(at: str) -> bool:
    """Sync the whole file system; False if the platform has no such call."""
    sync = getattr(CDLL(None, use_errno=True), "syncfs", None)  # Linux only
    if sync is None:
        return False
    handle = os.open(at, os.O_RDONLY)
    try:
        if sync(handle):
            raise OSError(get_errno(), f"{os.strerror(get_errno())}: {at}")
    finally:
        os.close(handle)
    return True


def sync_path(full: str) -> None:
    """Sync one file, or the entries of one folder."""
    handle = os.open(full, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_QUIET_SECONDS = 3600.0
_WORTH_THREADS = 1_000  # files to move; for fewer, starting threads takes longer
_BUFFER = 256 << 10  # most files fit in one write


@dataclass(frozen=True)
class LocalStorage(Storage):
    """A root folder on this machine or on a shared disk.

    Private files are readable for their owner alone; for others, the umask decides.
    """

    uri: str
    private: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "uri", str(Path(self.uri).absolute()))

    @property
    def fs(self) -> pafs.FileSystem:
        return pafs.LocalFileSystem()

    def full(self, path: str) -> str:
        return path if path.startswith("/") else super().full(path)

    def fs_path(self, path: str) -> str:
        return self.full(path)

    def read(self, path: str) -> bytes | None:
        try:
            with open(self.full(path), "rb") as stream:
                return stream.read()
        except FileNotFoundError:
            return None

    def open_input(self, path: str) -> pa.NativeFile:
        return self.fs.open_input_file(self.full(path))

    def open_stream(self, path: str) -> pa.NativeFile:
        return self.fs.open_input_stream(self.full(path), compression=None)

    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        # Spark may run two attempts of a task at once: each writes its own draft.
        full = self.full(path)
        draft = draft_path(full)
        try:
            with open(open_new(draft, self.private), "wb", buffering=_BUFFER) as out:
                yield out
            os.replace(draft, full)
        except BaseException:
            discard(draft)
            raise

    def write_unique(self, path: str, data: bytes | memoryview) -> None:
        full = self.full(path)
        handle = open_new(full, self.private)
        try:
            rest = memoryview(data)
            while len(rest):  # a nearly full disk accepts a part of the data
                rest = rest[os.write(handle, rest) :]
        except BaseException:
            discard(full)
            raise
        finally:
            os.close(handle)

    def write(self, path: str, data: bytes) -> None:
        self._write(path, data)

    def _write(self, path: str, data: bytes) -> None:
        with self._drafted([(path, data)]) as [draft]:
            os.replace(draft, self.full(path))

    def create(self, path: str, data: bytes) -> bool:
        with self._drafted([(path, data)]) as [draft]:
            return _linked(draft, self.full(path))

    def create_all(self, files: Sequence[tuple[str, bytes]]) -> list[bool]:
        with self._drafted(files) as drafts:
            every = zip(files, drafts, strict=True)
            return [self._put_new(draft, path) for (path, _), draft in every]

    def _put_new(self, draft: str, path: str) -> bool:
        """Link one of several drafts to its path if that does not exist."""
        return _linked(draft, self.full(path))

    def update(self, path: str, change: Change) -> None:
        with self._locked(path):
            changed = change(self.read(path))
            if changed is not None:
                self._write(path, changed)

    def update_all(self, changes: Sequence[tuple[str, Change]]) -> None:
        """Write all drafts first, then replace the files one by one unless modified meanwhile."""
        due: list[tuple[str, Change, bytes | None]] = []
        new: list[tuple[str, bytes]] = []
        for path, change in changes:
            old = self.read(path)
            changed = change(old)
            if changed is not None:
                due.append((path, change, old))
                new.append((path, changed))
        with self._drafted(new) as drafts:
            for draft, (path, change, old) in zip(drafts, due, strict=True):
                if not self._exchange(draft, path, old):
                    self.update(path, change)

    def _exchange(self, draft: str, path: str, old: bytes | None) -> bool:
        """Replace a file with its draft if the file still has the content that was read."""
        with self._locked(path):
            if self.read(path) != old:
                return False
            os.replace(draft, self.full(path))
            return True

    @contextmanager
    def _locked(self, path: str) -> Iterator[None]:
        """Lock the folder of a file against other updates."""
        # The operating system releases the lock if the holder dies.
        handle = open_new(f"{os.path.dirname(self.full(path))}/.lock", self.private)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    @contextmanager
    def _drafted(self, files: Sequence[tuple[str, bytes]]) -> Iterator[list[str]]:
        """Write drafts and sync them to disk, ready to be renamed.

        Without the sync, a file renamed before a power failure could be empty afterwards.
        """
        drafts = [draft_path(self.full(path)) for path, _ in files]
        try:
            for draft, (_, data) in zip(drafts, files, strict=True):
                with open(open_new(draft, self.private), "wb") as out:
                    out.write(data)
            self._sync_drafts(drafts)
            yield drafts
        finally:
            for draft in drafts:
                discard(draft)

    def _sync_drafts(self, drafts: Sequence[str]) -> None:
        sync_files(drafts, (), self.uri)

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
        try:
            return iter(self.fs.get_file_info(selector))
        except FileNotFoundError:
            # Arrow tests for a missing folder after the listing failed. If another process created
            # the folder in between, Arrow raises although missing folders are allowed.
            return iter(self.fs.get_file_info(selector))

    def _relative(self, full: str) -> str:
        return full[len(self.uri) + 1 :]

    def move_into_place(self, source: str, target: str) -> None:
        full = self.full(target)
        # A new folder cannot contain the target.
        if not _made(full.rpartition("/")[0], self.private) and self.exists(target):
            return
        try:
            os.replace(self.full(source), full)
        except FileNotFoundError:
            if not self.exists(target):  # else another run has moved it
                raise

    def move_all_into_place(self, moves: Sequence[tuple[str, str]]) -> None:
        # Moves out of the same folder block each other: use one thread per folder.
        by_folder: dict[str, list[tuple[str, str]]] = {}
        for move in moves:
            by_folder.setdefault(move[0].rpartition("/")[0], []).append(move)
        if len(moves) < _WORTH_THREADS:
            super().move_all_into_place(moves)
            return
        with ThreadPoolExecutor(len(by_folder)) as pool:
            list(pool.map(super().move_all_into_place, by_folder.values()))

    def start_sync(self, files: int) -> None:
        start_early_sync(files, self.uri)

    def make_durable(self, paths: Sequence[str]) -> None:
        finish_early_syncs(self.uri)
        files = [self.full(path) for path in paths]
        by_folder: dict[str, set[str]] = {}
        for file in files:
            folder, _, name = file.rpartition("/")
            by_folder.setdefault(folder, set()).add(name)
        for folder, names in by_folder.items():
            _require_whole(folder, names)
        sync_files(files, list(by_folder), self.uri)

    def copy(self, source: str, target: str) -> None:
        full = self.full(target)
        _made(full.rpartition("/")[0], self.private)
        try:
            os.link(self.full(source), full)  # files never change, so two names may share one
        except FileExistsError:
            pass
        except FileNotFoundError:
            raise
        except OSError:  # a file system without links
            draft = self.full(f"{target.rpartition('/')[0]}/.{uuid.uuid4().hex}")
            shutil.copy(self.full(source), draft)  # with its mode
            os.replace(draft, full)
        sync_path(full)

    def delete(self, path: str) -> None:
        discard(self.full(path))

    def delete_folder(self, folder: str) -> None:
        shutil.rmtree(self.full(folder), ignore_errors=True)

    def delete_empty_folders(self, folder: str) -> None:
        # Skip recently modified folders: another process may be about to write into them.
        before = now().timestamp() - _QUIET_SECONDS
        for at, _, _ in os.walk(self.full(folder), topdown=False):
            with suppress(OSError):  # not empty, or already deleted
                if os.stat(at).st_mtime < before:
                    os.rmdir(at)

    def discard_partial_writes(self, folder: str, run_id: str) -> None:
        """Nothing to do: a partial write is an ordinary file."""


def _linked(draft: str, full: str) -> bool:
    """Link a draft to a path; return False if that exists."""
    try:
        # Unlike O_EXCL followed by a write, a link never exposes a partial file.
        os.link(draft, full)
    except FileExistsError:
        return False
    return True


def _made(folder: str, private: bool) -> bool:
    """Create a folder if necessary; True only if it certainly did not exist before."""
    try:
        os.mkdir(folder, 0o700 if private else 0o777)  # the parent mostly exists
    except FileExistsError:
        return False
    except FileNotFoundError:
        make_folder(folder, private)
        return False
    return True


def _require_whole(folder: str, names: set[str]) -> None:
    """Raise if one of these files is missing; delete drafts that killed tasks left of them."""
    there = os.listdir(folder)
    for missing in names.difference(there):
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), f"{folder}/{missing}")
    for left in there:
        if target_of_draft(left) in names:
            discard(f"{folder}/{left}")
