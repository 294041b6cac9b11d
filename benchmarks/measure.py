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
from benchmarks.process_tree import cpu_of_children, descendants, memory

_EVERY = 0.1  # seconds between two looks at the memory
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
        with _MemoryWatch() as watch:
            code = process.wait()
            wall = time.monotonic() - began
        _reap_the_rest()
    if code:
        told = log.read_text(errors="replace")[-3_000:]
        raise Failed(f"{' '.join(command)} ended with {code}:\n{told}")
    marks = Marks.read(marks_file)
    return Measurement(
        wall=wall,
        cpu=cpu_of_children() - cpu_before,
        peak_memory=watch.peak,
        ready=marks.ready - began if marks.ready else None,
        steps=marks.steps,
    )


class _MemoryWatch:
    """Looks at the memory of all processes below this one, over and over."""

    def __init__(self) -> None:
        self.peak = 0
        self._done = Event()
        self._thread = Thread(target=self._look, daemon=True)

    def __enter__(self) -> "_MemoryWatch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.wait(_EVERY):
            self.peak = max(self.peak, memory(descendants(os.getpid())))


def _reap_the_rest() -> None:
    """Wait for what the program left behind, so that its CPU time is known."""
    deadline = time.monotonic() + _LAST_ONES
    with suppress(ChildProcessError):  # none is left
        while True:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if pid:
                continue
            if time.monotonic() > deadline:
                for left in descendants(os.getpid()):
                    with suppress(ProcessLookupError):
                        os.kill(left, signal.SIGKILL)
            time.sleep(0.02)
