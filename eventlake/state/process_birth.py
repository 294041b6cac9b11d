"""When a process was born: a number alone does not name it, since systems give numbers again."""

import os
from functools import cache

# In `/proc/<pid>/stat`, after the name, which may hold anything.
_STATE, _STARTED = 0, 19


def birth(pid: int) -> str | None:
    """A mark that no other process of that number ever had; "" where the system tells none.

    None if no process has this number, or only the remains of one that was killed.
    """
    if not _exists(pid):
        return None
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except OSError:
        return ""  # no such files on this system, or not for our eyes
    return None if fields[_STATE] in "ZX" else f"{_boot()}-{fields[_STARTED]}"


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@cache
def _boot() -> str:
    """Which start of the machine this is: the times of processes are counted from it."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot:
            return boot.read().strip()[:8]
    except OSError:
        return ""
