"""One program, run to its end and measured."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import msgspec

from benchmarks.marks import MARKS_VARIABLE, Marks
from benchmarks.process_tree import (
    cpu_of,
    cpu_of_children,
    descendants,
    forgets_children,
    memory,
)

# Seconds between two looks at the memory: each takes a twentieth of one, and holds up what it sees.
_MEMORY_EVERY = 1.0
_CPU_EVERY = 0.1  # nobody tells the CPU time of forgotten processes once they have ended
_LAST_ONES = 60.0  # seconds that a JVM may take to end after its program


class Measurement(msgspec.Struct, frozen=True):
    """What a run took; `ready` is when it began to read, where the program tells."""

    wall: float
    cpu: float
    peak_memory: int
    ready: float | None = None
    steps: dict[str, float] = {}


class Failed(Exception):
    """A program of the benchmark that did not end well."""


def measure(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> Measurement:
    """Run the program; its output goes to `output.log` in the folder."""
    marks_file = folder / "marks.json"
    log = folder / "output.log"
    variables = {**os.environ, **(environment or {}), MARKS_VARIABLE: str(marks_file)}
    cpu_before = cpu_of_children()
    with log.open("wb") as output:
        began = time.monotonic()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=variables
        )
        with _Watch() as watch:
            code = process.wait()
            wall = time.monotonic() - began
            ours_to_wait_for = _reap_the_rest()
    forgotten = sum(cpu for pid, cpu in watch.forgotten.items() if pid not in ours_to_wait_for)
    if code:
        told = log.read_text(errors="replace")[-3_000:]
        raise Failed(f"{' '.join(command)} ended with {code}:\n{told}")
    marks = Marks.read(marks_file)
    return Measurement(
        wall=wall,
        cpu=cpu_of_children() - cpu_before + forgotten,
        peak_memory=watch.peak,
        ready=marks.ready - began if marks.ready else None,
        steps=marks.steps,
    )


class _Watch:
    """Looks at all processes below this one, over and over."""

    def __init__(self) -> None:
        self.peak = 0
        self.forgotten: dict[int, float] = {}  # CPU seconds that nobody else will tell
        self._done = Event()
        self._thread = Thread(target=self._look, daemon=True)

    def __enter__(self) -> "_Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        pause = _CPU_EVERY  # at first, so that who is done at once is looked at, too
        next_look = time.monotonic() + pause
        while not self._done.wait(_CPU_EVERY):
            if time.monotonic() >= next_look:
                self._look_at_all()
                pause = min(2 * pause, _MEMORY_EVERY)
                next_look = time.monotonic() + pause
            for pid in self.forgotten:
                self.forgotten[pid] = cpu_of(pid) or self.forgotten[pid]

    def _look_at_all(self) -> None:
        processes = descendants(os.getpid())
        self.peak = max(self.peak, memory(processes))
        forgetful = set(filter(forgets_children, set(processes.values())))
        for pid, parent in processes.items():
            if parent in forgetful:
                self.forgotten.setdefault(pid, 0.0)


def _reap_the_rest() -> set[int]:
    """Wait for what the program left behind, so that its CPU time is known."""
    reaped: set[int] = set()
    deadline = time.monotonic() + _LAST_ONES
    with suppress(ChildProcessError):  # none is left
        while True:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if pid:
                reaped.add(pid)
                continue
            if time.monotonic() > deadline:
                for left in descendants(os.getpid()):
                    with suppress(ProcessLookupError):
                        os.kill(left, signal.SIGKILL)
            time.sleep(0.02)
    return reaped
