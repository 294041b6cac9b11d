"""The lease of a source: it spares two runs the same work; safety lies in the commit."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import msgspec

from eventlake.rules import paths
from eventlake.rules.errors import LakeError
from eventlake.state.holder import Holder, myself, renewed
from eventlake.storage import Storage
from eventlake.storage.documents import decode, encode

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

    holder = _take(storage, path, run_id, mine)
    if holder is not None:
        with _in_line(storage, paths.waiting_run(source_id, run_id), mine):
            _wait(storage, path, holder, run_id, mine, waiting)
    try:
        with renewed(lambda: _take(storage, path, run_id, mine), path):
            yield
    finally:
        with suppress(LakeError, OSError):  # what cannot be given back expires
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


def _take(storage: Storage, path: str, run_id: str, mine: Callable[[], bytes]) -> Lease | None:
    """Take the lease, inherit it from the dead or renew it; else who holds it.

    Of several who find a holder dead, one gets it. Who has lost it does not get it back by force.
    """
    holder: Lease | None = None

    def change(data: bytes | None) -> bytes | None:
        nonlocal holder
        found = None if data is None else decode(data, Lease, path)
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
    """Wait until the lease is ours; `waiting` hears once of everybody it is waited for."""
    told: str | None = None
    while holder is not None:
        if holder.run_id != told:
            told = holder.run_id
            waiting(holder)
        time.sleep(POLL_SECONDS)
        holder = _take(storage, path, run_id, mine)


@contextmanager
def _in_line(storage: Storage, sign: str, mine: Callable[[], bytes]) -> Iterator[None]:
    """Leave a sign while waiting; it is a courtesy, so nothing fails for want of it."""
    with suppress(LakeError, OSError):
        storage.write(sign, mine())
    try:
        with renewed(lambda: storage.write(sign, mine()), sign):
            yield
    finally:
        with suppress(LakeError, OSError):
            storage.delete(sign)


def _living(storage: Storage, path: str) -> Lease | None:
    data = storage.read(path)
    lease = None if data is None else decode(data, Lease, path)
    return lease if lease is not None and lease.holder.alive else None
