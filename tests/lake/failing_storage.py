"""A store that fails at a chosen moment, as machines and networks do."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lake.storage import LocalStorage, Storage
from lake.storage.base import Change
from lake.storage.s3 import S3Storage


class Fault(StrEnum):
    """What happens at the chosen change of the store."""

    REFUSED = "refused"  # it is not made; later ones are
    LOST_ANSWER = "lost answer"  # it is made, and yet reported as failed
    DEATH = "death"  # neither it nor any later one is made: the process is gone


class Broken(OSError):
    """The fault that was asked for."""


@dataclass
class Faults:
    """Counts the changes of a store and lets one of them fail; none, for a start."""

    fault: Fault = Fault.REFUSED
    at: int = -1
    changes: int = 0
    log: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def change(self, name: str, path: str, make: Callable[[], Any]) -> Any:
        with self.lock:
            number, self.changes = self.changes, self.changes + 1
            self.log.append(f"{name} {path}")
        if number == self.at and self.fault is Fault.LOST_ANSWER:
            make()
        if number == self.at or (number > self.at >= 0 and self.fault is Fault.DEATH):
            raise Broken(f"{name} {path}")
        return make()


class Failing(Storage):
    """All that changes the store goes by its faults; reading never fails."""

    faults: Faults

    def write(self, path: str, data: bytes) -> None:
        store: Any = super()
        self.faults.change("write", path, lambda: store.write(path, data))

    def create(self, path: str, data: bytes) -> bool:
        store: Any = super()
        made: bool = self.faults.change("create", path, lambda: store.create(path, data))
        return made

    def update(self, path: str, change: Change) -> None:
        """A fault comes between reading and writing, and only where there is something to write."""

        def changed(data: bytes | None) -> bytes | None:
            new = change(data)
            return None if new is None else self.faults.change("update", path, lambda: new)

        store: Any = super()
        store.update(path, changed)

    def open_output(self, path: str) -> Any:
        store: Any = super()
        return self.faults.change("open", path, lambda: store.open_output(path))

    def place(self, source: str, target: str) -> None:
        store: Any = super()
        self.faults.change("place", target, lambda: store.place(source, target))

    def copy(self, source: str, target: str) -> None:
        store: Any = super()
        self.faults.change("copy", target, lambda: store.copy(source, target))

    def delete(self, path: str) -> None:
        store: Any = super()
        self.faults.change("delete", path, lambda: store.delete(path))

    def delete_folder(self, folder: str) -> None:
        store: Any = super()
        self.faults.change("clear", folder, lambda: store.delete_folder(folder))


@dataclass(frozen=True)
class FailingStorage(Failing, LocalStorage):
    """A folder on a disk that fails."""

    faults: Faults = field(default_factory=Faults)


@dataclass(frozen=True)
class FailingS3Storage(Failing, S3Storage):
    """A bucket behind a network that fails."""

    faults: Faults = field(default_factory=Faults)
