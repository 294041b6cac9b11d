"""Files under other names until they are whole: in the same folder, and hidden."""

import os
import uuid
from contextlib import suppress
from functools import lru_cache
from itertools import count

_numbers = count()


def aside(full: str) -> str:
    """Where a file is written until it is whole: nobody else writes to the same place."""
    folder, _, name = full.rpartition("/")
    return f"{folder}/.{name}.{own_name()}"


def own_name() -> str:
    """A name that nobody else has, nor had."""
    return f"{_mine(os.getpid())}{next(_numbers):x}"


@lru_cache(maxsize=1)
def _mine(process: int) -> str:
    """What no other process has, on whatever machine; one that was forked has its own."""
    return uuid.uuid4().hex


def open_new(full: str) -> int:
    """Open a file of our own for writing; its folder is made if there is none."""
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        return os.open(full, flags, 0o666)
    except FileNotFoundError:  # tried first: most files go where others are
        os.makedirs(os.path.dirname(full), exist_ok=True)
        return os.open(full, flags, 0o666)


def discard(full: str) -> None:
    """Remove a file; one that is not there is fine."""
    with suppress(FileNotFoundError):
        os.unlink(full)


def left_of(name: str) -> str | None:
    """Which file was being written under a name; None if it is no name of such a one."""
    return name[1:].rpartition(".")[0] if name.startswith(".") else None
