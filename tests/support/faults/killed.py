"""Processes that are killed, as by `kill -9`, at a chosen call of the store."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eventlake.runs import placement
from eventlake.storage import LocalStorage
from tests.support.faults.cases import CASES
from tests.support.faults.failing_storage import Failing, Faults
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.runs import Runs

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.support.faults.killed"])


@dataclass
class Kills(Faults):
    """Ends the process at a change, just before it or just after; by its number, or its words."""

    after: bool = False
    where: str | None = None

    def change(self, name: str, path: str, make: Callable[[], Any]) -> Any:
        number, call = self._count(name, path), f"{name} {path}"
        if number != self.at and not (self.where and call.startswith(self.where)):
            return make()
        if self.after:
            make()
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("dead by now")


@dataclass(frozen=True)
class KillingStorage(Failing, LocalStorage):
    """Of a file that was being written, half is there. Tasks of Spark get a healthy one."""

    faults: Kills = field(default_factory=Kills)

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalStorage, (self.uri,)

    def open_output(self, path: str) -> Any:
        self._perhaps_half(path)
        return super().open_output(path)

    def put_own(self, path: str, data: bytes | memoryview) -> None:
        self._perhaps_half(path)
        super().put_own(path, data)

    def _perhaps_half(self, path: str) -> None:
        if self.faults.changes == self.faults.at:
            full = Path(self.full(path))
            full.parent.mkdir(parents=True, exist_ok=True)
            full.write_bytes(b"PAR1 and no more")


def killed_step(root: Path, step: str, at: int, after: bool = False) -> None:
    """Carry out a step of a case in a process of its own, which does not survive it."""
    process = _FORKS.Process(target=_die, args=(root, step, at, after))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL, f"{step} at {at} ended with {process.exitcode}"


def _die(root: Path, step: str, at: int, after: bool) -> None:
    placement.SPLIT_BYTES, InProcess.slots = 220, 2  # small lakes have several files, too
    runs = Runs(root, first_run=10, store=KillingStorage(str(root), Kills(at=at, after=after)))
    next(case for case in CASES if case.name == step).step(runs)
