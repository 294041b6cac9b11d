"""Whether a UI runs on a Dagster home: a lock that ends with the process that took it."""

import fcntl
import os
from pathlib import Path

_FILE = "in_use.lock"


def claim(home: Path) -> bool:
    """Hold the home until this process ends, whatever program it becomes; False: another does."""
    handle = os.open(home / _FILE, os.O_RDWR | os.O_CREAT, 0o666)
    os.set_inheritable(handle, True)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return False
    return True


def is_claimed(home: Path) -> bool:
    """Whether somebody holds it now."""
    try:
        handle = os.open(home / _FILE, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
