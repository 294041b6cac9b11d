"""Runs a program to its end and measures the time, CPU and memory of all its processes."""

import ctypes
import os
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

import msgspec

from benchmarks.programs.common import MARKS_VARIABLE, Marks

_PROC = Path("/proc")
_SET_CHILD_SUBREAPER = 36
_MEMORY_SECONDS = 1.0  # reading the memory takes 0.05 s and blocks the measured processes
_CPU_SECONDS = 0.1  # the CPU time of processes without a waiting parent is lost when they end
_EXIT_SECONDS = 60.0  # a JVM may take this long to end after its program


class Measurement(msgspec.Struct, frozen=True):
    """What a run took; `ready` is when it started to read, if the program records that."""

    wall: float
    cpu: float
    peak_memory: int
    ready: float | None = None
    steps: dict[str, float] = {}


class Failed(Exception):
    """The benchmark cannot continue, for example because a measured program failed."""


def adopt_orphans() -> None:
    """Make this process the parent of orphaned descendants, so that their CPU time is counted."""
    if not _PROC.joinpath("self", "smaps_rollup").exists():
        raise Failed("the benchmarks need /proc, and therefore Linux")
    if ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise Failed("cannot adopt orphaned processes: prctl(PR_SET_CHILD_SUBREAPER) failed")


def measure(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> Measurement:
    """Run the program; its output goes to `output.log` in the folder."""
    marks_file = folder / "marks.json"
    log = folder / "output.log"
    variables = {**os.environ, **(environment or {}), MARKS_VARIABLE: str(marks_file)}
    cpu_before = _cpu_of_children()
    with log.open("wb") as output:
        began = time.monotonic()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=variables
        )
        with _Watch() as watch:
            code = process.wait()
            wall = time.monotonic() - began
            reaped = _reap_the_rest()
    unreaped = sum(cpu for pid, cpu in watch.unwaited.items() if pid not in reaped)
    if code:
        end_of_log = log.read_text(errors="replace")[-3_000:]
        raise Failed(f"{' '.join(command)} ended with exit code {code}:\n{end_of_log}")
    marks = Marks.read(marks_file)
    return Measurement(
        wall=wall,
        cpu=_cpu_of_children() - cpu_before + unreaped,
        peak_memory=watch.peak_memory,
        ready=marks.ready - began if marks.ready else None,
        steps=marks.steps,
    )


class _Watch:
    """Samples all descendants of this process in a thread."""

    def __init__(self) -> None:
        self.peak_memory = 0
        self.unwaited: dict[int, float] = {}  # CPU seconds by pid, where no parent waits
        self._done = Event()
        self._thread = Thread(target=self._sample, daemon=True)

    def __enter__(self) -> "_Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _sample(self) -> None:
        pause = _CPU_SECONDS  # short at first, to include programs that end quickly
        next_sample = time.monotonic() + pause
        while not self._done.wait(_CPU_SECONDS):
            if time.monotonic() >= next_sample:
                self._sample_all()
                pause = min(2 * pause, _MEMORY_SECONDS)
                next_sample = time.monotonic() + pause
            for pid in self.unwaited:
                self.unwaited[pid] = cpu_of(pid) or self.unwaited[pid]

    def _sample_all(self) -> None:
        processes = _descendants(os.getpid())
        self.peak_memory = max(self.peak_memory, memory_of(processes))
        not_waiting = set(filter(_ignores_children, set(processes.values())))
        for pid, parent in processes.items():
            if parent in not_waiting:
                self.unwaited.setdefault(pid, 0.0)


def _reap_the_rest() -> set[int]:
    """Wait for the processes that outlive the program, so that their CPU time is counted."""
    reaped: set[int] = set()
    deadline = time.monotonic() + _EXIT_SECONDS
    with suppress(ChildProcessError):  # no child is left
        while True:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if pid:
                reaped.add(pid)
                continue
            if time.monotonic() > deadline:
                for left in _descendants(os.getpid()):
                    with suppress(ProcessLookupError):
                        os.kill(left, signal.SIGKILL)
            time.sleep(0.02)
    return reaped


def memory_of(processes: Iterable[int]) -> int:
    """Bytes of all processes together; memory that several share counts once (PSS)."""
    return sum(map(_proportional_memory, processes))


def cpu_of(pid: int) -> float:
    """CPU seconds of a running process and of its children that have ended."""
    with suppress(OSError):
        return sum(map(int, _stat(pid)[11:15])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _cpu_of_children() -> float:
    """CPU seconds of all descendants of this process that have ended and were waited for."""
    times = os.times()
    return times.children_user + times.children_system


def _descendants(root: int) -> dict[int, int]:
    """All processes below this one, each with its parent."""
    children: dict[int, list[int]] = defaultdict(list)
    for pid, parent in _parents():
        children[parent].append(pid)
    found: dict[int, int] = {}
    queue = [root]
    while queue:
        parent = queue.pop()
        found |= dict.fromkeys(children[parent], parent)
        queue += children[parent]
    return found


def _ignores_children(pid: int) -> bool:
    """Whether the process ignores SIGCHLD, so that Linux drops the CPU time of its children.

    Spark's daemon for Python workers does.
    """
    with suppress(OSError):
        for line in _PROC.joinpath(str(pid), "status").read_text().splitlines():
            if line.startswith("SigIgn:"):
                return bool(int(line.split()[1], 16) >> (signal.SIGCHLD - 1) & 1)
    return False


def _parents() -> Iterator[tuple[int, int]]:
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # the process has just ended
                yield int(folder.name), int(_stat(int(folder.name))[1])


def _stat(pid: int) -> list[str]:
    """The fields after the process name, which is in brackets and may contain any character."""
    return _PROC.joinpath(str(pid), "stat").read_text().rpartition(")")[2].split()


def _proportional_memory(pid: int) -> int:
    with suppress(OSError):
        for line in _PROC.joinpath(str(pid), "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
