"""A clock for tests in which one run waits for the lease of another."""

import threading
from collections.abc import Callable

import pytest

from eventlake.state import lease

_DEADLINE = 60.0  # seconds; only a broken test takes that long


class LeaseClock:
    """Stands for `time` in `eventlake.state.lease`: time passes only while the main thread sleeps.

    A poll of the waiting thread that is due by then is carried out first, so the order of both
    threads does not depend on the speed of the machine.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._now = 0.0
        self._due = float("inf")
        self._main = threading.current_thread()
        self._waiter: threading.Thread | None = None
        self._idle = threading.Semaphore(0)  # the waiter sleeps or has ended
        self._woken = threading.Semaphore(0)
        monkeypatch.setattr(lease, "time", self)

    def start(self, work: Callable[[], object]) -> None:
        """Run `work` in a thread until it waits for the lease for the first time."""

        def run() -> None:
            try:
                work()
            finally:
                self._idle.release()

        self._waiter = threading.Thread(target=run)
        self._waiter.start()
        self._await_waiter()

    def join(self) -> None:
        """Let time pass until the thread ends."""
        assert self._waiter is not None
        while self._due < float("inf"):
            self.sleep(lease.POLL_SECONDS)
        self._waiter.join(_DEADLINE)
        assert not self._waiter.is_alive()

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        if threading.current_thread() is self._main:
            self._now += seconds
            if self._due <= self._now:
                self._due = float("inf")
                self._woken.release()
                self._await_waiter()
        else:
            self._due = self._now + seconds
            self._idle.release()
            assert self._woken.acquire(timeout=_DEADLINE)

    def _await_waiter(self) -> None:
        assert self._idle.acquire(timeout=_DEADLINE), "the thread neither waits nor ends"
