"""A process that carries out a job on EMR's driver: it ends when it should, and not before."""

import os
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

_SIGN_SECONDS = 30.0
# EMR looks at this file to tell a cluster that works without YARN from an idle one.
_BUSY = Path("/emr/metricscollector/isbusy")


@contextmanager
def interruptible() -> Iterator[None]:
    """A cancelled step gets SIGTERM, or loses the JVM it was started by: it stops at once."""

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    parent, done = os.getppid(), threading.Event()

    def watch() -> None:
        while not done.wait(1.0):
            if os.getppid() != parent:
                os.kill(os.getpid(), signal.SIGTERM)
                return

    threading.Thread(target=watch, name="watch the JVM", daemon=True).start()
    try:
        yield
    finally:
        done.set()
        signal.signal(signal.SIGTERM, before)


@contextmanager
def busy() -> Iterator[None]:
    """Waiting for another run's lease is not idling: EMR would end the cluster of a replay."""
    done = threading.Event()

    def sign() -> None:
        while _BUSY.parent.is_dir() and not done.wait(_SIGN_SECONDS):
            _BUSY.touch()

    threading.Thread(target=sign, name="sign of work", daemon=True).start()
    try:
        yield
    finally:
        done.set()


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
