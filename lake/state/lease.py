"""The lease of a source: it spares two runs the same work; safety lies in the commit."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import msgspec

from lake import paths
from lake.errors import LakeError
from lake.state.codec import decode, encode
from lake.state.holder import Holder, myself, renewed
from lake.storage import Storage

POLL_SECONDS = 2.0


class Lease(msgspec.Struct, frozen=True):
    """Which run works on the source, or waits to do so, and at what."""

    run_id: str
    work: str
    holder: Holder

    def __str__(self) -> str:
        return f"{self.work} (run {self.run_id}, {self.holder})"


def read_lease(storage: Storage, source_id: str) -> Lease | None:
    """Who holds the lease now; None if nobody does or its holder is dead."""
    return _living(storage, paths.lease(source_id))


@contextmanager
def held_lease(
    storage: Storage, source_id: str, run_id: str, work: str, waiting: Callable[[Lease], None]
) -> Iterator[None]:
    """Hold the lease while the block runs; `waiting` hears for whom it has to wait."""
    path = paths.lease(source_id)

    def mine() -> bytes:
        return encode(Lease(run_id, work, myself()))

    if not storage.create(path, mine()):
        with _in_line(storage, paths.waiting_run(source_id, run_id), mine):
            _acquire(storage, path, mine, waiting)
    try:
        with renewed(storage, path, mine):
            yield
    except BaseException:
        with suppress(Exception):  # or it would be told instead of what went wrong
            _release(storage, path, run_id)
        raise
    _release(storage, path, run_id)


def _release(storage: Storage, path: str, run_id: str) -> None:
    data = storage.read(path)
    if data is not None and decode(data, Lease, path).run_id == run_id:
        storage.delete(path)


def remove_dead_lease(storage: Storage, source_id: str) -> Lease | None:
    """Free what a dead holder left behind; None if there is nothing of the kind."""
    path = paths.lease(source_id)
    data = storage.read(path)
    lease = None if data is None else decode(data, Lease, path)
    if lease is None or lease.holder.alive:
        return None
    storage.delete(path)
    return lease


def make_way(storage: Storage, source_id: str, run_id: str) -> None:
    """Let others who wait for the lease have it first: they look for it only now and then."""
    deadline = time.monotonic() + 3 * POLL_SECONDS
    while time.monotonic() < deadline:
        if not _others_wait(storage, source_id, run_id) or read_lease(storage, source_id):
            return
        time.sleep(POLL_SECONDS / 10)


def _others_wait(storage: Storage, source_id: str, run_id: str) -> bool:
    """Whether somebody else waits; signs of the dead are cleared away."""
    found = False
    for sign in storage.files(paths.waiting(source_id)):
        waiting = _living(storage, sign.path)
        if waiting is None:
            storage.delete(sign.path)
        elif waiting.run_id != run_id:
            found = True
    return found


def _acquire(
    storage: Storage, path: str, mine: Callable[[], bytes], waiting: Callable[[Lease], None]
) -> None:
    told: str | None = None
    while not storage.create(path, mine()):
        data = storage.read(path)
        if data is None:
            continue  # given back just now; others may be faster
        lease = decode(data, Lease, path)
        if not lease.holder.alive:
            if _inherited(storage, path, mine):
                return
            continue
        if lease.run_id != told:
            told = lease.run_id
            waiting(lease)
        time.sleep(POLL_SECONDS)


def _inherited(storage: Storage, path: str, mine: Callable[[], bytes]) -> bool:
    """Take the lease of a dead holder; of several who find it dead, one gets it."""
    got = False

    def take(data: bytes | None) -> bytes | None:
        nonlocal got
        got = data is None or not decode(data, Lease, path).holder.alive
        return mine() if got else None

    storage.update(path, take)
    return got


@contextmanager
def _in_line(storage: Storage, sign: str, mine: Callable[[], bytes]) -> Iterator[None]:
    """Leave a sign while waiting; it is a courtesy, so nothing fails for want of it."""
    with suppress(LakeError, OSError):
        storage.write(sign, mine())
    try:
        with renewed(storage, sign, mine):
            yield
    finally:
        with suppress(LakeError, OSError):
            storage.delete(sign)


def _living(storage: Storage, path: str) -> Lease | None:
    data = storage.read(path)
    lease = None if data is None else decode(data, Lease, path)
    return lease if lease is not None and lease.holder.alive else None
