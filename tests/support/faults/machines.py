"""Runs in processes of their own, which can be killed."""

import multiprocessing
import os
import random
import signal
import socket
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

from eventlake.load.write import LoadJob
from eventlake.rules import paths
from eventlake.runs import placement, run
from eventlake.state import lease
from eventlake.storage import LocalStorage, Storage
from tests.support.faults.cases import CASES
from tests.support.faults.failing_storage import Failing, Faults
from tests.support.faults.flows import flow
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.runs import SOURCE_ID, Runs

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.support.faults.machines"])

Work = Callable[[Runs, random.Random], None]

_PATIENCE = 60.0  # seconds until a test fails that waits for another machine


class Meeting:
    """Makes machines conflict at least once, however the system schedules them.

    With leases, the first machine that loads waits until another one waits for its lease. Without
    them, a number of machines wait for each other in their first load: only one of them can commit
    what it loaded.
    """

    def __init__(self, leases: bool, machines: int) -> None:
        self._leases = leases
        self._barrier = _FORKS.Barrier(machines)
        self._over = _FORKS.Event()

    def before_load(self, storage: Storage, is_first: bool) -> None:
        if not self._leases and is_first:
            self._barrier.wait(_PATIENCE)
        elif self._leases and not self._over.is_set():
            deadline = time.monotonic() + _PATIENCE
            while not storage.files(paths.waiting(SOURCE_ID)):
                assert time.monotonic() < deadline, "no other machine waits for the lease"
                time.sleep(0.005)
            self._over.set()


class Machine:
    """Works on a lake until it is done; `join` raises if it failed."""

    def __init__(
        self, root: Path, number: int, seed: int, work: Work, leases: bool, meeting: Meeting | None
    ) -> None:
        self._pipe, theirs = _FORKS.Pipe()
        arguments = (root, number, seed, work, leases, meeting, theirs)
        self._process = _FORKS.Process(target=_work, args=arguments)
        self._process.start()
        theirs.close()

    def go(self) -> None:
        """Let it start; call this on all machines once all of them exist."""
        self._pipe.recv()
        self._pipe.send("go")

    def join(self) -> list[str]:
        """Its log messages and warnings."""
        messages: list[str] = []
        try:
            error, messages = self._pipe.recv()
        except EOFError:
            error = "the process died"
        self._process.join()
        assert error is None, error
        return messages


def _work(
    root: Path, number: int, seed: int, work: Work, leases: bool, meeting: Meeting | None, boss: Any
) -> None:
    runs = Runs(root, first_run=number * 1_000)
    runs.flow = _slow_flow(meeting)
    boss.send("ready")
    boss.recv()
    try:
        with (
            patch.object(socket, "gethostname", lambda: f"machine-{number}"),
            patch.object(lease, "POLL_SECONDS", 0.01),
            patch.object(run, "held_lease", lease.held_lease if leases else _no_lease),
        ):
            work(runs, random.Random(seed * 10 + number))
        boss.send((None, [*runs.logged, *runs.warnings]))
    except BaseException:
        boss.send((traceback.format_exc(), []))


def _slow_flow(meeting: Meeting | None) -> type[InProcess]:
    """Gives other machines the time to commit in between."""
    loads = count()

    def before_load(job: LoadJob) -> None:
        is_first = next(loads) == 0
        if meeting is not None:
            meeting.before_load(job.storage, is_first)
        time.sleep(0.02)

    return flow(before_load=before_load)


@contextmanager
def _no_lease(*arguments: object) -> Iterator[None]:
    """As if every holder were dead: only the commit keeps the machines apart."""
    yield


def at_once(
    root: Path, works: Sequence[Work], seed: int, leases: bool, conflicting: int = 0
) -> list[str]:
    """Run all of them at the same time; returns their log messages and warnings.

    If a number of `conflicting` machines is given, that many machines load something, and at least
    one conflict between them is certain.
    """
    meeting = Meeting(leases, conflicting) if conflicting else None
    machines = [Machine(root, n + 1, seed, work, leases, meeting) for n, work in enumerate(works)]
    for machine in machines:
        machine.go()
    return [line for machine in machines for line in machine.join()]


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

    def write_unique(self, path: str, data: bytes | memoryview) -> None:
        self._perhaps_half(path)
        super().write_unique(path, data)

    def _perhaps_half(self, path: str) -> None:
        if self.faults.changes == self.faults.at:
            full = Path(self.full(path))
            full.parent.mkdir(parents=True, exist_ok=True)
            full.write_bytes(b"PAR1 and no more")


def killed_step(root: Path, step: str, at: int, after: bool = False) -> None:
    """Run a step of a case in a process of its own, which is killed at a change."""
    process = _FORKS.Process(target=_die, args=(root, step, at, after))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL, f"{step} at {at} ended with {process.exitcode}"


def _die(root: Path, step: str, at: int, after: bool) -> None:
    placement.SPLIT_BYTES, InProcess.slots = 220, 2  # small lakes have several files, too
    runs = Runs(root, first_run=10, store=KillingStorage(str(root), Kills(at=at, after=after)))
    next(case for case in CASES if case.name == step).step(runs)
