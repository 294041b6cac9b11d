"""The lease of a source: avoids duplicate work. Safety comes from the commit, not from it."""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cache

import msgspec

from eventlake.rules import paths
from eventlake.rules.errors import LakeError
from eventlake.storage import Storage
from eventlake.storage.documents import decode_note, encode

# In `/proc/<pid>/stat`, after the name, which may hold anything.
_STATE, _STARTED = 0, 19


def birth(pid: int) -> str | None:
    """Identifies a process even if its number is reused; "" if the system does not support it.

    None if no process has this number, or only the remains of one that was killed.
    """
    if not _exists(pid):
        return None
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except OSError:
        return ""  # no such file on this system, or not readable
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
    """Identifies the boot of the machine: start times of processes count from it."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot:
            return boot.read().strip()[:8]
    except OSError:
        return ""


LIFETIME = timedelta(minutes=2)
RENEWAL_SECONDS = 30.0


class Holder(msgspec.Struct, frozen=True):
    """The process that holds a lease or a run, and when it expires."""

    host: str
    pid: int
    expires: datetime
    born: str = ""  # identifies the process if its number is reused; "" if unknown

    @property
    def alive(self) -> bool:
        if self.is_here and not self.runs_here:
            return False  # known at once on its own machine, elsewhere after expiry
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
    """Renew a file regularly while the block runs, so that its holder counts as alive."""
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


POLL_SECONDS = 2.0


class Lease(msgspec.Struct, frozen=True):
    """The run that works on a source, or waits to do so, and its work."""

    run_id: str
    work: str
    holder: Holder

    def __str__(self) -> str:
        return f"{self.work} (run {self.run_id}, {self.holder})"


def read_lease(storage: Storage, source_id: str) -> Lease | None:
    """The current lease; None if there is none or its holder is dead."""
    return _living(storage, paths.lease(source_id))


@contextmanager
def held_lease(
    storage: Storage, source_id: str, run_id: str, work: str, waiting: Callable[[Lease], None]
) -> Iterator[None]:
    """Hold the lease while the block runs; calls `waiting` with the lease it waits for."""
    path = paths.lease(source_id)

    def mine() -> bytes:
        return encode(Lease(run_id, work, myself()))

    holder = _take(storage, path, run_id, mine)
    if holder is not None:
        with _in_line(storage, paths.waiting_run(source_id, run_id), mine):
            _wait(storage, path, holder, run_id, mine, waiting)
    try:
        with renewed(lambda: _take(storage, path, run_id, mine), path):
            yield
    finally:
        with suppress(LakeError, OSError):  # if it cannot be deleted, it expires
            held = decode_note(storage.read(path), Lease, path)
            if held is not None and held.run_id == run_id:
                storage.delete(path)


def remove_dead_lease(storage: Storage, source_id: str) -> Lease | None:
    """Delete the lease of a dead holder and return it; None if there is none."""
    path = paths.lease(source_id)
    lease = decode_note(storage.read(path), Lease, path)
    if lease is None or lease.holder.alive:
        return None
    storage.delete(path)
    return lease


def make_way(storage: Storage, source_id: str, run_id: str) -> None:
    """Give waiting runs time to take the lease: they poll for it."""
    deadline = time.monotonic() + 3 * POLL_SECONDS
    while time.monotonic() < deadline:
        if not _others_wait(storage, source_id, run_id) or read_lease(storage, source_id):
            return
        time.sleep(POLL_SECONDS / 10)


def _others_wait(storage: Storage, source_id: str, run_id: str) -> bool:
    """Whether another run waits; removes the files of dead ones."""
    found = False
    for sign in storage.files(paths.waiting(source_id)):
        waiting = _living(storage, sign.path)
        if waiting is None:
            storage.delete(sign.path)
        elif waiting.run_id != run_id:
            found = True
    return found


def _take(storage: Storage, path: str, run_id: str, mine: Callable[[], bytes]) -> Lease | None:
    """Take the lease, take it over from a dead holder, or renew it; else return its holder.

    If several runs find a holder dead, one of them gets the lease. A run that lost its lease does
    not take it back.
    """
    holder: Lease | None = None

    def change(data: bytes | None) -> bytes | None:
        nonlocal holder
        found = decode_note(data, Lease, path)
        holder = found if found and found.run_id != run_id and found.holder.alive else None
        return None if holder else mine()

    storage.update(path, change)
    return holder


def _wait(
    storage: Storage,
    path: str,
    holder: Lease | None,
    run_id: str,
    mine: Callable[[], bytes],
    waiting: Callable[[Lease], None],
) -> None:
    """Wait for the lease; calls `waiting` once per holder."""
    reported: str | None = None
    while holder is not None:
        if holder.run_id != reported:
            reported = holder.run_id
            waiting(holder)
        time.sleep(POLL_SECONDS)
        holder = _take(storage, path, run_id, mine)


@contextmanager
def _in_line(storage: Storage, sign: str, mine: Callable[[], bytes]) -> Iterator[None]:
    """Write a file while waiting. It is only a hint, so errors are ignored."""
    with suppress(LakeError, OSError):
        storage.write(sign, mine())
    try:
        with renewed(lambda: storage.write(sign, mine()), sign):
            yield
    finally:
        with suppress(LakeError, OSError):
            storage.delete(sign)


def _living(storage: Storage, path: str) -> Lease | None:
    lease = decode_note(storage.read(path), Lease, path)
    return lease if lease is not None and lease.holder.alive else None
