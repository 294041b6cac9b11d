"""Who is at work: a sign of life in a file, renewed while its process lives."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

import msgspec

from lake.storage import Storage

LIFETIME = timedelta(minutes=2)
RENEWAL_SECONDS = 30.0


class Holder(msgspec.Struct, frozen=True):
    """A process, and until when it is believed to be alive."""

    host: str
    pid: int
    expires: datetime

    @property
    def alive(self) -> bool:
        if self.host == socket.gethostname() and not _running(self.pid):
            return False  # known at once on its own machine, elsewhere when the time is up
        return datetime.now(UTC) < self.expires

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def myself() -> Holder:
    return Holder(socket.gethostname(), os.getpid(), datetime.now(UTC) + LIFETIME)


@contextmanager
def renewed(storage: Storage, path: str, content: Callable[[], bytes]) -> Iterator[None]:
    """Write a file again and again while the block runs, so that others see it is alive."""
    done = threading.Event()

    def renew() -> None:
        while not done.wait(RENEWAL_SECONDS):
            with suppress(OSError):  # the next one may succeed
                storage.write(path, content())

    thread = threading.Thread(target=renew, name=f"renew {path}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
