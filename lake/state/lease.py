"""The lease of a source: it spares two runs the same work; safety lies in the commit."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from lake import paths
from lake.state.codec import decode, encode
from lake.state.holder import Holder, myself, renewed
from lake.storage import Storage

POLL_SECONDS = 2.0


class Lease(msgspec.Struct, frozen=True):
    """Which run works on the source, and at what."""

    run_id: str
    work: str
    holder: Holder

    def __str__(self) -> str:
        return f"{self.work} (run {self.run_id}, {self.holder})"


def read_lease(storage: Storage, source_id: str) -> Lease | None:
    """Who holds the lease now; None if nobody does or its holder is dead."""
    path = paths.lease(source_id)
    data = storage.read(path)
    lease = None if data is None else decode(data, Lease, path)
    return lease if lease is not None and lease.holder.alive else None


@contextmanager
def held_lease(
    storage: Storage, source_id: str, run_id: str, work: str, waiting: Callable[[Lease], None]
) -> Iterator[None]:
    """Hold the lease while the block runs; `waiting` hears for whom it has to wait."""
    path = paths.lease(source_id)

    def mine() -> bytes:
        return encode(Lease(run_id, work, myself()))

    _acquire(storage, source_id, mine, waiting)
    try:
        with renewed(storage, path, mine):
            yield
    finally:
        data = storage.read(path)
        if data is not None and decode(data, Lease, path).run_id == run_id:
            storage.delete(path)


def _acquire(
    storage: Storage,
    source_id: str,
    mine: Callable[[], bytes],
    waiting: Callable[[Lease], None],
) -> None:
    told: str | None = None
    path = paths.lease(source_id)
    while not storage.create(path, mine()):
        lease = read_lease(storage, source_id)
        if lease is None:
            storage.delete(path)
            continue
        if lease.run_id != told:
            told = lease.run_id
            waiting(lease)
        time.sleep(POLL_SECONDS)
