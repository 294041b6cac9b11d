"""A lake in a folder."""

import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from ctypes import CDLL, get_errno
from dataclasses import dataclass
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
    """Where a file is written until it is whole: nobody else writes to the same place."""
    folder, _, name = full.rpartition("/")
    return f"{folder}/.{name}.{unique_name()}"


def unique_name() -> str:
    """A name that nobody else has, nor had."""
    return f"{_mine(os.getpid())}{next(_numbers):x}"


@lru_cache(maxsize=1)
def _mine(process: int) -> str:
    """What no other process has, on whatever machine; one that was forked has its own."""
    return uuid.uuid4().hex


def open_new(full: str) -> int:
    """Open a file of our own for writing; its folder is made if there is none."""
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        return os.open(full, flags, 0o666)
    except FileNotFoundError:  # tried first: most files go where others are
        os.makedirs(os.path.dirname(full), exist_ok=True)
        return os.open(full, flags, 0o666)


def discard(full: str) -> None:
    """Remove a file; one that is not there is fine."""
    with suppress(FileNotFoundError):
        os.unlink(full)


def target_of_draft(name: str) -> str | None:
    """Which file was being written under a name; None if it is no name of such a one."""
    return name[1:].rpartition(".")[0] if name.startswith(".") else None


MANY = 500
"""Files from which on it costs less to wait for the whole disk than for each of them."""


def sync_files(files: Sequence[str], folders: Sequence[str], root: str) -> None:
    """Wait until files below a root, and what stands in folders, would outlive a power cut."""
    if len(files) > MANY and sync_disk(root):
        return
    every = [*files, *folders]
    if len(every) == 1:
        sync_path(every[0])
        return
    with ThreadPoolExecutor(THREADS) as pool:  # a disk does many of these as one
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


def sync_path(full: str) -> None:
    """One file, or what stands in one folder."""
    handle = os.open(full, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_QUIET_SECONDS = 3600.0
_WORTH_THREADS = 1_000  # files to be placed: fewer are placed sooner than threads are started
_BUFFER = 256 << 10  # of a file that is being written: most are written at once


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
        full = self.full(path)
        draft = draft_path(full)
        try:
            with open(open_new(draft), "wb", buffering=_BUFFER) as out:
                yield out
            os.replace(draft, full)
        except BaseException:
            discard(draft)
            raise

    def write_unique(self, path: str, data: bytes | memoryview) -> None:
        full = self.full(path)
        handle = open_new(full)
        try:
            rest = memoryview(data)
            while len(rest):  # a disk that is nearly full takes a part, and then refuses
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
        """Put one of several files in its place if that is free."""
        return _linked(draft, self.full(path))

    def update(self, path: str, change: Change) -> None:
        with self._locked(path):
            changed = change(self.read(path))
            if changed is not None:
                self._write(path, changed)

    def update_all(self, changes: Sequence[tuple[str, Change]]) -> None:
        """All are written aside first, and put into place one by one, where nobody was quicker."""
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
        """Put one of several files in place of what was read there, if that has not changed."""
        with self._locked(path):
            if self.read(path) != old:
                return False
            os.replace(draft, self.full(path))
            return True

    @contextmanager
    def _locked(self, path: str) -> Iterator[None]:
        """Nobody else updates a file of the same folder while the block runs."""
        # The system frees the lock when its holder dies.
        handle = open_new(f"{os.path.dirname(self.full(path))}/.lock")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    @contextmanager
    def _drafted(self, files: Sequence[tuple[str, bytes]]) -> Iterator[list[str]]:
        """Files as they are to be, put aside and on the disk: in their places they are whole.

        After a power cut, too: what was renamed before it was written would be empty by then.
        """
        drafts = [draft_path(self.full(path)) for path, _ in files]
        try:
            for draft, (_, data) in zip(drafts, files, strict=True):
                with open(open_new(draft), "wb") as out:
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
        return iter(self.fs.get_file_info(selector))

    def _relative(self, full: str) -> str:
        return full[len(self.uri) + 1 :]

    def move_into_place(self, source: str, target: str) -> None:
        full = self.full(target)
        # In a folder that was not there, there is nothing to look for.
        if not _made(full.rpartition("/")[0]) and self.exists(target):
            return
        try:
            os.replace(self.full(source), full)
        except FileNotFoundError:
            if not self.exists(target):  # else another run has just done it
                raise

    def move_all_into_place(self, moves: Sequence[tuple[str, str]]) -> None:
        # Those who move files out of one folder would only wait for each other.
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
        _made(full.rpartition("/")[0])
        shutil.copyfile(self.full(source), full)
        sync_path(full)

    def delete(self, path: str) -> None:
        discard(self.full(path))

    def delete_folder(self, folder: str) -> None:
        shutil.rmtree(self.full(folder), ignore_errors=True)

    def delete_empty_folders(self, folder: str) -> None:
        # Not one that was changed just now: somebody may be about to write into it.
        before = now().timestamp() - _QUIET_SECONDS
        for at, _, _ in os.walk(self.full(folder), topdown=False):
            with suppress(OSError):  # there is something in it, or it is gone
                if os.stat(at).st_mtime < before:
                    os.rmdir(at)

    def discard_partial_writes(self, folder: str, run_id: str) -> None:
        """What a run was writing here is a file like others: there is nothing to free."""


def _linked(draft: str, full: str) -> bool:
    """Give a file its name if that is free."""
    try:
        # A link, unlike O_EXCL and a write after it, never leaves a half-written winner.
        os.link(draft, full)
    except FileExistsError:
        return False
    return True


def _made(folder: str) -> bool:
    """See to it that there is a folder; whether there certainly was none, nor anything in it."""
    try:
        os.mkdir(folder)  # mostly there is one above it
    except FileExistsError:
        return False
    except FileNotFoundError:
        os.makedirs(folder, exist_ok=True)
        return False
    return True


def _require_whole(folder: str, names: set[str]) -> None:
    """Raise if one of these files is not there; remove what killed tasks have left of them."""
    there = os.listdir(folder)
    for missing in names.difference(there):
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), f"{folder}/{missing}")
    for left in there:
        if target_of_draft(left) in names:
            discard(f"{folder}/{left}")
