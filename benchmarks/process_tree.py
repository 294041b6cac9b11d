"""What a program and everything it starts take of this machine, from Linux's /proc."""

import ctypes
import os
from collections import defaultdict
from collections.abc import Iterator
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


def descendants(root: int) -> list[int]:
    """All processes below this one."""
    children: dict[int, list[int]] = defaultdict(list)
    for pid, parent in _parents():
        children[parent].append(pid)
    found: list[int] = []
    queue = [root]
    while queue:
        below = children[queue.pop()]
        found += below
        queue += below
    return found


def memory(processes: list[int]) -> int:
    """Bytes of all of them together; what several share counts once (PSS)."""
    return sum(map(_memory_of, processes))


def cpu_of_children() -> float:
    """Seconds, of all children of this process that have ended, and of theirs."""
    times = os.times()
    return times.children_user + times.children_system


def _parents() -> Iterator[tuple[int, int]]:
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # it has just ended
                # The name, in brackets, may hold anything.
                after_name = folder.joinpath("stat").read_text().rpartition(")")[2]
                yield int(folder.name), int(after_name.split()[1])


def _memory_of(pid: int) -> int:
    with suppress(OSError):
        for line in _PROC.joinpath(str(pid), "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
