"""A store that fails at a chosen moment, as machines and networks do."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lake.storage import Storage


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

    def change(self, name: str, path: str, make: Callable[[], Any]) -> Any:
        number, self.changes = self.changes, self.changes + 1
        self.log.append(f"{name} {path}")
        if number == self.at and self.fault is Fault.LOST_ANSWER:
            make()
        if number == self.at or (number > self.at >= 0 and self.fault is Fault.DEATH):
            raise Broken(f"{name} {path}")
        return make()


@dataclass(frozen=True)
class FailingStorage(Storage):
    """All that changes the store goes by its faults; reading never fails."""

    faults: Faults = field(default_factory=Faults)

    def write(self, path: str, data: bytes) -> None:
        self.faults.change("write", path, lambda: Storage.write(self, path, data))

    def create(self, path: str, data: bytes) -> bool:
        made: bool = self.faults.change("create", path, lambda: Storage.create(self, path, data))
        return made

    def open_output(self, path: str) -> Any:
        return self.faults.change("open", path, lambda: Storage.open_output(self, path))

    def place(self, source: str, target: str) -> None:
        self.faults.change("place", target, lambda: Storage.place(self, source, target))

    def copy(self, source: str, target: str) -> None:
        self.faults.change("copy", target, lambda: Storage.copy(self, source, target))

    def delete(self, path: str) -> None:
        self.faults.change("delete", path, lambda: Storage.delete(self, path))

    def delete_folder(self, folder: str) -> None:
        self.faults.change("clear", folder, lambda: Storage.delete_folder(self, folder))
