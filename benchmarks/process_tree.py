"""What a program and everything it starts take of this machine, from Linux's /proc."""

import ctypes
import os
import signal
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Processes whose parent ends become children of this one, so that none escapes the count."""
    if not _PROC.joinpath("self", "smaps_rollup").exists():
        raise RuntimeError("the benchmarks measure by Linux's /proc, which is not here")
    if ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise RuntimeError("Linux refuses to let this process adopt orphans")


def descendants(root: int) -> dict[int, int]:
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


def memory(processes: Iterable[int]) -> int:
    """Bytes of all of them together; what several share counts once (PSS)."""
    return sum(map(_memory_of, processes))


def cpu_of_children() -> float:
    """Seconds, of all children of this process that have ended, and of theirs."""
    times = os.times()
    return times.children_user + times.children_system


def cpu_of(pid: int) -> float:
    """Seconds, of a process that still runs, and of its children that have ended."""
    with suppress(OSError):
        return sum(map(int, _stat(pid)[11:15])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def forgets_children(pid: int) -> bool:
    """Whether Linux drops the CPU time of its children, since it told that it won't wait for them.

    Spark's daemon for Python workers is one of these.
    """
    with suppress(OSError):
        for line in _PROC.joinpath(str(pid), "status").read_text().splitlines():
            if line.startswith("SigIgn:"):
                return bool(int(line.split()[1], 16) >> (signal.SIGCHLD - 1) & 1)
    return False


def _parents() -> Iterator[tuple[int, int]]:
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # it has just ended
                yield int(folder.name), int(_stat(int(folder.name))[1])


def _stat(pid: int) -> list[str]:
    """What stands behind the name, which is in brackets and may hold anything."""
    return _PROC.joinpath(str(pid), "stat").read_text().rpartition(")")[2].split()


def _memory_of(pid: int) -> int:
    with suppress(OSError):
        for line in _PROC.joinpath(str(pid), "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
