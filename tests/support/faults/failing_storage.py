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
from eventlake.storage import LocalStorage, Storage
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
    """Counts the calls of a store that can have a fault, and lets the one at `at` fail."""

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


def _failing(method: str, label: str, path: int = 0, by: str = "change") -> Any:
    """The method of a store, with a fault; `path` is the position of its argument."""

    def call(self: "Failing", *args: Any, **options: Any) -> Any:
        make = getattr(super(Failing, self), method)
        return getattr(self.faults, by)(label, args[path], lambda: make(*args, **options))

    return call


class Failing(Storage):
    """Any call may fail."""

    faults: Faults

    write: Any = _failing("write", "write")
    create: Any = _failing("create", "create")
    _put_new = _failing("_put_new", "create", path=1)  # one of several that a disk creates
    _exchange = _failing("_exchange", "update", path=1)  # one of several that a disk updates
    write_unique: Any = _failing("write_unique", "open")
    move_into_place: Any = _failing("move_into_place", "place", path=1)
    copy: Any = _failing("copy", "copy", path=1)
    delete: Any = _failing("delete", "delete")
    delete_folder: Any = _failing("delete_folder", "clear")
    discard_partial_writes: Any = _failing("discard_partial_writes", "abandon")
    read: Any = _failing("read", "read", by="look")
    open_input: Any = _failing("open_input", "look into", by="look")
    open_stream: Any = _failing("open_stream", "stream", by="look")
    exists: Any = _failing("exists", "look for", by="look")
    files: Any = _failing("files", "list", by="look")
    folders: Any = _failing("folders", "list", by="look")

    def read_many(self, paths: Sequence[str]) -> list[bytes | None]:
        return [self.read(path) for path in paths]  # one by one, in the same order each time

    def update(self, path: str, change: Change) -> None:
        """A fault comes between reading and writing, or after it, if there is much to write."""
        store: Any = super()
        lost = False

        def changed(data: bytes | None) -> bytes | None:
            new = change(data)
            if new is None:
                return None
            try:
                self.faults.change("update", path, lambda: None)
            except Broken:
                if self.faults.fault is not Fault.LOST_ANSWER:
                    raise
                nonlocal lost
                lost = True
            return new

        store.update(path, changed)
        if lost:
            raise Broken(f"update {path}")

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
    """Those of them that catalog and state lead to, and those that wait for a partition to come
    home."""
    folders: set[str] = set()
    for database in runs.catalog.databases():
        for table in runs.catalog.tables(database):
            for partition in runs.catalog.partitions(database, table.name):
                folders.add(partition.location)
                if table.full_name in runs.state().tables:
                    folders.add(runs.state().home(table.full_name, partition.values))
    folders |= state_places(runs.state())
    return {path for path in lying(runs) if path in folders or path.rpartition("/")[0] in folders}


@dataclass(frozen=True)
class Deadly(LocalStorage):
    """Kills the first task that reads a raw file, and the first that writes a file of a table.

    On a cluster also the first that reads staged blobs, in order to deduplicate ("comparing"), and
    that records rows which were not loaded ("logging").

    With `whole_machine`, Spark's executor and worker die, too.
    """

    driver: int = 0
    calls: tuple[str, ...] = ("reading", "writing")
    whole_machine: bool = True

    def open_stream(self, path: str) -> Any:
        self._perhaps("reading")
        return super().open_stream(path)

    def open_input(self, path: str) -> Any:
        if "/blobs/" in path:
            self._perhaps("comparing")
        return super().open_input(path)

    def open_output(self, path: str) -> Any:
        if "segment_type=" in path:
            self._perhaps("writing")
        elif "/records_" in path and "/records_loaded" not in path:
            self._perhaps("logging")
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
