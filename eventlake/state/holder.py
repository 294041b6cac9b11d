"""Who is at work: a sign of life in a file, renewed while its process lives."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

import msgspec

from eventlake.rules.errors import LakeError
from eventlake.state.process_birth import birth

LIFETIME = timedelta(minutes=2)
RENEWAL_SECONDS = 30.0


class Holder(msgspec.Struct, frozen=True):
    """A process, and until when it is believed to be alive."""

    host: str
    pid: int
    expires: datetime
    born: str = ""  # tells a process from a later one with the same number; "" if unknown

    @property
    def alive(self) -> bool:
        if self.is_here and not self.runs_here:
            return False  # known at once on its own machine, elsewhere when the time is up
        return datetime.now(UTC) < self.expires

    @property
    def is_here(self) -> bool:
        return self.host == socket.gethostname()

    @property
    def runs_here(self) -> bool:
        """Whether this machine has the process."""
        born = birth(self.pid)
        return born is not None and (born == self.born or not born or not self.born)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def myself() -> Holder:
    pid = os.getpid()
    return Holder(socket.gethostname(), pid, datetime.now(UTC) + LIFETIME, birth(pid) or "")


@contextmanager
def renewed(renew: Callable[[], object], path: str) -> Iterator[None]:
    """Renew a file again and again while the block runs, so that others see its holder lives."""
    done = threading.Event()

    def go_on() -> None:
        while not done.wait(RENEWAL_SECONDS):
            with suppress(OSError, LakeError):  # the next one may succeed
                renew()

    thread = threading.Thread(target=go_on, name=f"renew {path}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
