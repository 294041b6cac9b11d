"""Storage that fails, lies or kills its process at a given call."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from eventlake.rules import paths
from eventlake.runs.clean_up import state_places
from eventlake.storage import LocalStorage, Storage, StoredFile
from eventlake.storage.base import Change
from eventlake.storage.s3 import S3Storage
from tests.support.lakes.runs import SOURCE_ID, Runs


class Fault(StrEnum):
    """What happens at the chosen call."""

    REFUSED = "refused"  # it is not made; later ones are
    LOST_ANSWER = "lost answer"  # it is made, and yet reported as failed
    DEATH = "death"  # neither it nor any later change is made: the process is gone
    UNREADABLE = "unreadable"  # something cannot be read, listed or looked for; later it can


class Broken(OSError):
    """The fault that was asked for."""


@dataclass
class Faults:
    """Counts the calls of a store that can have a fault, and lets one fail; none, for a start."""

    fault: Fault = Fault.REFUSED
    at: int = -1
    log: list[str] = field(default_factory=list)
    lock: Any = field(default_factory=threading.Lock, repr=False)

    @property
    def changes(self) -> int:
        return len(self.log)

    def change(self, name: str, path: str, make: Callable[[], Any]) -> Any:
        if self.fault is Fault.UNREADABLE:
            return make()
        number = self._count(name, path)
        if number == self.at and self.fault is Fault.LOST_ANSWER:
            make()
        if number == self.at or (number > self.at >= 0 and self.fault is Fault.DEATH):
            raise Broken(f"{name} {path}")
        return make()

    def look(self, name: str, path: str, make: Callable[[], Any]) -> Any:
        if self.fault is Fault.UNREADABLE and self._count(name, path) == self.at:
            raise Broken(f"{name} {path}")
        return make()

    def _count(self, name: str, path: str) -> int:
        with self.lock:
            self.log.append(f"{name} {path}")
            return len(self.log) - 1


class Failing(Storage):
    """Every call goes by the faults."""

    faults: Faults

    def write(self, path: str, data: bytes) -> None:
        store: Any = super()
        self.faults.change("write", path, lambda: store.write(path, data))

    def create(self, path: str, data: bytes) -> bool:
        store: Any = super()
        made: bool = self.faults.change("create", path, lambda: store.create(path, data))
        return made

    def update(self, path: str, change: Change) -> None:
        """A fault comes between reading and writing, or after it, if there is much to write."""
        store: Any = super()
        lost = False

        def changed(data: bytes | None) -> bytes | None:
            new = change(data)
            if new is None:
                return None

            def make() -> bytes:
                return new

            try:
                made: bytes = self.faults.change("update", path, make)
            except Broken:
                if self.faults.fault is not Fault.LOST_ANSWER:
                    raise
                nonlocal lost
                lost = True
                return new
            return made

        store.update(path, changed)
        if lost:
            raise Broken(f"update {path}")

    def _put_new(self, draft: str, path: str) -> bool:
        """One of several files that a disk creates together."""
        store: Any = super()
        made: bool = self.faults.change("create", path, lambda: store._put_new(draft, path))
        return made

    def _exchange(self, draft: str, path: str, old: bytes | None) -> bool:
        """One of several files that a disk updates together."""
        store: Any = super()
        made: bool = self.faults.change("update", path, lambda: store._exchange(draft, path, old))
        return made

    def _sync_drafts(self, drafts: Sequence[str]) -> None:
        store: Any = super()
        if len(drafts) > 1:
            self.faults.change("settle", drafts[0], lambda: store._sync_drafts(drafts))
        else:
            store._sync_drafts(drafts)

    @contextmanager
    def open_output(self, path: str) -> Iterator[Any]:
        store: Any = super()
        lost = False
        try:
            self.faults.change("open", path, lambda: None)
        except Broken:
            if self.faults.fault is not Fault.LOST_ANSWER:
                raise
            lost = True
        with store.open_output(path) as out:
            yield out
        if lost:
            raise Broken(f"open {path}")

    def write_unique(self, path: str, data: bytes | memoryview) -> None:
        store: Any = super()
        self.faults.change("open", path, lambda: store.write_unique(path, data))

    def move_into_place(self, source: str, target: str) -> None:
        store: Any = super()
        self.faults.change("place", target, lambda: store.move_into_place(source, target))

    def copy(self, source: str, target: str) -> None:
        store: Any = super()
        self.faults.change("copy", target, lambda: store.copy(source, target))

    def delete(self, path: str) -> None:
        store: Any = super()
        self.faults.change("delete", path, lambda: store.delete(path))

    def delete_folder(self, folder: str) -> None:
        store: Any = super()
        self.faults.change("clear", folder, lambda: store.delete_folder(folder))

    def discard_partial_writes(self, folder: str, run_id: str) -> None:
        store: Any = super()
        self.faults.change("abandon", folder, lambda: store.discard_partial_writes(folder, run_id))

    def read(self, path: str) -> bytes | None:
        store: Any = super()
        data: bytes | None = self.faults.look("read", path, lambda: store.read(path))
        return data

    def read_many(self, paths: Sequence[str]) -> list[bytes | None]:
        return [self.read(path) for path in paths]  # one by one, in the same order each time

    def open_input(self, path: str) -> Any:
        store: Any = super()
        return self.faults.look("look into", path, lambda: store.open_input(path))

    def open_stream(self, path: str) -> Any:
        store: Any = super()
        return self.faults.look("stream", path, lambda: store.open_stream(path))

    def exists(self, path: str) -> bool:
        store: Any = super()
        found: bool = self.faults.look("look for", path, lambda: store.exists(path))
        return found

    def files(self, folder: str, *, recursive: bool = True) -> list[StoredFile]:
        store: Any = super()
        found: list[StoredFile] = self.faults.look(
            "list", folder, lambda: store.files(folder, recursive=recursive)
        )
        return found

    def folders(self, folder: str) -> list[str]:
        store: Any = super()
        found: list[str] = self.faults.look("list", folder, lambda: store.folders(folder))
        return found


@dataclass(frozen=True)
class FailingStorage(Failing, LocalStorage):
    """A folder on a disk that fails."""

    faults: Faults = field(default_factory=Faults)


@dataclass(frozen=True)
class FailingS3Storage(Failing, S3Storage):
    """A bucket behind a network that fails."""

    faults: Faults = field(default_factory=Faults)


def lying(runs: Runs) -> set[str]:
    """Data and index files."""
    places = (f"segment-data/data/{SOURCE_ID}", paths.id_indexes(SOURCE_ID))
    return {file.path for place in places for file in runs.storage.files(place)}


def needed(runs: Runs) -> set[str]:
    """Those of them that catalog and state lead to."""
    folders = {
        partition.location
        for database in runs.catalog.databases()
        for table in runs.catalog.tables(database)
        for partition in runs.catalog.partitions(database, table.name)
    }
    folders |= state_places(runs.state())
    return {path for path in lying(runs) if path in folders or path.rpartition("/")[0] in folders}


@dataclass(frozen=True)
class Deadly(LocalStorage):
    """Kills the first task that reads a raw file, and the first that writes a file of a table.

    With `whole_machine`, Spark's executor and worker die, too.
    """

    driver: int = 0
    calls: tuple[str, ...] = ("reading", "writing")
    whole_machine: bool = True

    def open_stream(self, path: str) -> Any:
        self._perhaps("reading")
        return super().open_stream(path)

    def open_output(self, path: str) -> Any:
        if "segment_type=" in path:
            self._perhaps("writing")
        return super().open_output(path)

    def write_unique(self, path: str, data: bytes | memoryview) -> None:
        self._perhaps("writing")
        super().write_unique(path, data)

    def _perhaps(self, call: str) -> None:
        if call not in self.calls or os.getpid() == self.driver:
            return
        try:
            os.close(os.open(f"{self.uri}/{call}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        if self.whole_machine:
            executor = _parent(os.getppid())  # between them is the daemon that forks workers
            os.kill(_parent(executor), signal.SIGKILL)
            os.kill(executor, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
