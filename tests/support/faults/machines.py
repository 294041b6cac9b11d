"""Machines that work on one lake at the same time, each a process with a host name of its own."""

import multiprocessing
import random
import socket
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from eventlake.load.blobs import Shares
from eventlake.load.write import LoadedFile, LoadJob
from eventlake.runs import run
from eventlake.state import lease
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.runs import Runs

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.lake.machines"])

Work = Callable[[Runs, random.Random], None]


class Machine:
    """Works on a lake until it is done; `join` raises if it failed."""

    def __init__(self, root: Path, number: int, seed: int, work: Work, leases: bool) -> None:
        self._pipe, theirs = _FORKS.Pipe()
        arguments = (root, number, seed, work, leases, theirs)
        self._process = _FORKS.Process(target=_work, args=arguments)
        self._process.start()
        theirs.close()

    def go(self) -> None:
        """To be told to all of them when all are there."""
        self._pipe.recv()
        self._pipe.send("go")

    def join(self) -> list[str]:
        """What it was told to wait for, and warned of."""
        try:
            ended, told = self._pipe.recv()
        except EOFError:
            ended, told = "without a word", []
        self._process.join()
        assert ended is None, ended
        heard: list[str] = told
        return heard


def _work(root: Path, number: int, seed: int, work: Work, leases: bool, boss: Any) -> None:
    runs = Runs(root, first_run=number * 1_000)
    runs.flow = Slow
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


class Slow(InProcess):
    """Gives others the time to come in between."""

    def load(self, job: LoadJob, shares: Shares) -> list[LoadedFile]:
        time.sleep(0.02)
        return super().load(job, shares)


@contextmanager
def _no_lease(*arguments: object) -> Iterator[None]:
    """As if every holder were believed to be dead: nothing but the commit keeps them apart."""
    yield


def at_once(root: Path, works: Sequence[Work], seed: int, leases: bool) -> list[str]:
    """All of them at the same time; what they were told."""
    machines = [Machine(root, n + 1, seed, work, leases) for n, work in enumerate(works)]
    for machine in machines:
        machine.go()
    return [line for machine in machines for line in machine.join()]
