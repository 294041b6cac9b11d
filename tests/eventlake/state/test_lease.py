"""The lease: one run at a time, the living are waited for and the dead are not."""

import errno
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from eventlake.rules import paths
from eventlake.state import lease
from eventlake.state.lease import Holder, Lease, birth, held_lease, make_way, myself, read_lease
from eventlake.storage import Storage
from eventlake.storage.base import Change
from eventlake.storage.documents import encode
from tests.support.lease_clock import LeaseClock

LATER = datetime.now(UTC) + timedelta(days=1)


def nobody(found: Lease) -> None:
    raise AssertionError(f"waited for {found}")


def holder(storage: Storage) -> str | None:
    """The run that holds the lease."""
    found = read_lease(storage, "S1")
    return found.run_id if found else None


def leave_lease(storage: Storage, who: Holder, run: str = "R1") -> None:
    storage.write(paths.lease("S1"), encode(Lease(run, "sync", who)))


def test_the_lease_is_held_while_the_block_runs_and_free_afterwards(storage: Storage) -> None:
    assert read_lease(storage, "S1") is None
    with held_lease(storage, "S1", "R1", "sync", nobody):
        found = read_lease(storage, "S1")
        assert found is not None
        assert (found.run_id, found.work, found.holder.pid) == ("R1", "sync", os.getpid())
        assert str(found).startswith(f"sync (run R1, process {os.getpid()} on ")
        with held_lease(storage, "S2", "R2", "sync", nobody):  # another source
            pass
    assert read_lease(storage, "S1") is None
    with suppress(ValueError), held_lease(storage, "S1", "R1", "sync", nobody):
        raise ValueError
    assert storage.read(paths.lease("S1")) is None


def test_waiting_is_reported_once(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "POLL_SECONDS", 0.001)
    leave_lease(storage, myself())
    polls: Iterator[int] = iter(range(5))
    reported: list[str] = []

    def sleep(_: float) -> None:
        if next(polls) == 4:
            storage.delete(paths.lease("S1"))

    monkeypatch.setattr(time, "sleep", sleep)
    with held_lease(storage, "S1", "R2", "sync", lambda found: reported.append(found.run_id)):
        assert (reported, holder(storage)) == (["R1"], "R2")


def test_a_dead_process_on_this_machine_holds_nothing(storage: Storage, dead_pid: int) -> None:
    here = myself().host
    leave_lease(storage, Holder(here, dead_pid, LATER))
    assert read_lease(storage, "S1") is None
    with held_lease(storage, "S1", "R2", "sync", nobody):
        pass


@pytest.mark.parametrize(
    ("born", "alive"),
    [(myself().born, True), ("", True), ("0ld-1", False)],
    ids=["mine", "unknown", "other"],
)
def test_a_number_that_another_process_has_by_now_holds_nothing(born: str, alive: bool) -> None:
    assert Holder(myself().host, os.getpid(), LATER, born).alive is alive


def test_what_remains_of_a_killed_process_is_dead() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert birth(process.pid) not in (None, birth(os.getpid()))
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, but nobody has looked
    assert birth(process.pid) is None
    process.communicate()
    assert birth(process.pid) is None


def test_other_users_keep_their_lease(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_lease(storage, myself())

    def refused(pid: int, signal: int) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "kill", refused)
    waited = pytest.raises(AssertionError, match="waited for sync")
    with waited, held_lease(storage, "S1", "R2", "sync", nobody):
        pass
    assert holder(storage) == "R1"


def test_a_holder_written_by_an_earlier_release_is_known_by_its_number(storage: Storage) -> None:
    host, pid = myself().host, os.getpid()
    lease = f'{{"host": "{host}", "pid": {pid}, "expires": "{LATER.isoformat()}"}}'
    old = f'{{"format_version": 1, "run_id": "R1", "work": "sync", "holder": {lease}}}'
    storage.write(paths.lease("S1"), old.encode())
    assert read_lease(storage, "S1") == Lease("R1", "sync", Holder(host, pid, LATER))


def test_a_remote_process_lives_until_its_time_is_up(storage: Storage, dead_pid: int) -> None:
    elsewhere = Holder("another-machine", dead_pid, LATER)
    assert elsewhere.alive
    expired = Holder("another-machine", dead_pid, datetime.now(UTC) - timedelta(seconds=1))
    assert not expired.alive
    leave_lease(storage, expired)
    with held_lease(storage, "S1", "R2", "sync", nobody):
        pass


def test_a_lost_lease_is_not_taken_back(storage: Storage) -> None:
    with held_lease(storage, "S1", "R1", "sync", nobody):
        leave_lease(storage, myself(), run="R2")
    assert holder(storage) == "R2"


@pytest.fixture
def renewals(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """Released after each update of the storage; leases are renewed all the time."""
    updates = threading.Semaphore(0)
    update = type(storage).update

    def counted(self: Storage, path: str, change: Change) -> None:
        try:
            update(self, path, change)
        finally:
            updates.release()

    monkeypatch.setattr(lease, "RENEWAL_SECONDS", 0.001)
    monkeypatch.setattr(type(storage), "update", counted)
    return updates


def await_renewal(renewals: threading.Semaphore) -> None:
    """Wait for a renewal that begins after this call."""
    while renewals.acquire(blocking=False):
        pass
    for _ in range(2):  # the first one may have begun before
        assert renewals.acquire(timeout=60)


def test_a_lease_is_renewed_in_use(storage: Storage, renewals: threading.Semaphore) -> None:
    with held_lease(storage, "S1", "R1", "sync", nobody):
        first = read_lease(storage, "S1")
        await_renewal(renewals)
        renewed = read_lease(storage, "S1")
    assert first and renewed and renewed.holder.expires > first.holder.expires


def test_a_failed_renewal_is_retried(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEWAL_SECONDS", 0.001)
    tries = threading.Semaphore(0)
    errors = iter([None, OSError("the network is gone for a moment")])  # the first takes the lease

    def update(self: Storage, path: str, change: Change) -> None:
        tries.release()
        if error := next(errors, None):
            raise error

    monkeypatch.setattr(type(storage), "update", update)
    with held_lease(storage, "S1", "R1", "sync", nobody):
        assert all(tries.acquire(timeout=60) for _ in range(4))


def test_a_lost_lease_is_not_renewed(storage: Storage, renewals: threading.Semaphore) -> None:
    with held_lease(storage, "S1", "R1", "sync", nobody):
        # As everybody takes it: not between a renewal's look and its write.
        storage.update(paths.lease("S1"), lambda _: encode(Lease("R2", "sync", myself())))
        await_renewal(renewals)
        assert holder(storage) == "R2"


def test_an_unreleased_lease_is_kept(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Storage, path: str) -> None:
        raise OSError("the network is gone for a moment")

    with monkeypatch.context() as patch:
        patch.setattr(type(storage), "delete", refuse)
        with held_lease(storage, "S1", "R1", "day 1", nobody):
            pass
    assert read_lease(storage, "S1") is not None
    with held_lease(storage, "S1", "R1", "day 2", nobody):
        found = read_lease(storage, "S1")
        assert found is not None and found.work == "day 2"
    assert read_lease(storage, "S1") is None


def test_a_waiting_run_is_visible(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "POLL_SECONDS", 0.001)
    leave_lease(storage, myself())
    signs: list[str] = []

    def waiting(_: Lease) -> None:
        signs.extend(file.name for file in storage.files(paths.waiting("S1")))
        storage.delete(paths.lease("S1"))

    with held_lease(storage, "S1", "R2", "sync", waiting):
        assert signs == ["R2.json"]
        assert storage.files(paths.waiting("S1")) == []


def test_a_waiting_run_goes_first(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The replay gives the lease back only for a moment; the sync polls for it."""
    clock = LeaseClock(monkeypatch)
    order: list[str] = []

    def sync() -> None:
        with held_lease(storage, "S1", "sync", "sync", lambda _: None):
            order.append("sync")

    for day in range(4):
        if day:
            make_way(storage, "S1", "replay")
        with held_lease(storage, "S1", "replay", "replay", lambda _: None):
            order.append("day")
            if day == 1:
                clock.start(sync)
    clock.join()
    assert order == ["day", "day", "sync", "day", "day"]


def test_dead_runs_and_lost_runs_do_not_delay_others(
    storage: Storage, dead_pid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep(seconds: float) -> None:
        raise AssertionError(f"slept {seconds} s")

    with monkeypatch.context() as patch:
        patch.setattr(time, "sleep", sleep)
        dead = Lease("R1", "sync", Holder(myself().host, dead_pid, LATER))
        storage.write(paths.waiting_run("S1", "R1"), encode(dead))
        storage.write(paths.waiting_run("S1", "R2"), encode(Lease("R2", "sync", myself())))
        make_way(storage, "S1", "R2")
        assert [file.name for file in storage.files(paths.waiting("S1"))] == ["R2.json"]
    monkeypatch.setattr(lease, "POLL_SECONDS", 0.01)
    make_way(storage, "S1", "R3")  # R2 never comes, and yet this ends
