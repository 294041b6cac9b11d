"""A commit counts only if what it leads to is on the disk, not just in the system's memory."""

import errno
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from eventlake.load.record_log import LogJob, NotLoaded
from eventlake.rules import paths
from eventlake.state import lease
from eventlake.state.manifest import read_manifest
from eventlake.storage import local
from tests.support.faults.cases import first_sync, growing_sync, replay
from tests.support.faults.flows import flow
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.runs import SOURCE_ID, Runs


def test_many_files_are_brought_onto_the_disk_by_one_call_before_the_commit(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[set[str]] = []  # the files that each call finds
    sync_disk = local.sync_disk

    def note(at: str) -> bool:
        assert at == str(runs.root)
        synced.append({file.path for file in runs.storage.files("")})
        return sync_disk(at)

    monkeypatch.setattr(local, "MANY", 1)  # what a run writes one by one is synced by itself
    monkeypatch.setattr(local, "sync_disk", note)
    first_sync(runs)
    manifest = read_manifest(runs.storage, SOURCE_ID, 1)
    assert manifest is not None
    data = {file.written for change in manifest.partitions for file in change.added}
    # As soon as the tables are written, and again when everything is.
    early, final = synced[:2]
    assert data and data <= early
    assert {*manifest.written} <= final
    assert paths.manifest(SOURCE_ID, 1) not in final


class RenewsTheLease(InProcess):
    """The lease is renewed between the early sync and the commit."""

    def log(self, job: LogJob, tasks: Sequence[Sequence[NotLoaded]]) -> None:
        super().log(job, tasks)
        before = job.storage.read(paths.lease(SOURCE_ID))
        deadline = time.monotonic() + 60
        while job.storage.read(paths.lease(SOURCE_ID)) == before:
            assert time.monotonic() < deadline, "the lease was not renewed"
            time.sleep(0.01)


@pytest.mark.parametrize(("flow", "renewal"), [(InProcess, 3600), (RenewsTheLease, 0.01)])
def test_a_disk_error_in_the_early_sync_stops_the_commit(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, flow: type[InProcess], renewal: float
) -> None:
    synced: list[set[str]] = []

    def fails_once(at: str) -> bool:
        synced.append({file.path for file in runs.storage.files("")})
        if len(synced) == 1:  # Linux reports the error once
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return True

    monkeypatch.setattr(local, "MANY", 1)
    monkeypatch.setattr(local, "sync_disk", fails_once)
    monkeypatch.setattr(lease, "RENEWAL_SECONDS", renewal)
    runs.flow = flow
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        first_sync(runs)
    assert any("segment_type=track_order" in path for path in synced[0])
    assert not runs.storage.exists(paths.manifest(SOURCE_ID, 1))
    runs.flow = InProcess
    first_sync(runs)
    assert runs.ids("track_order") == ["m1", "m3"]


def test_a_system_without_that_call_does_them_one_by_one(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled: list[str] = []
    monkeypatch.setattr(local, "MANY", 0)
    monkeypatch.setattr(local, "sync_disk", lambda at: False)
    monkeypatch.setattr(local, "sync_path", settled.append)
    first_sync(runs)
    manifest = read_manifest(runs.storage, SOURCE_ID, 1)
    assert manifest is not None
    assert {str(runs.root / path) for path in manifest.written} <= {*settled}


@pytest.mark.usefixtures("small_files")
def test_every_file_of_a_commit_is_on_the_disk_before_it(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    def note(handle: int) -> None:
        full = os.readlink(f"/proc/self/fd/{handle}")
        order.append(full.removeprefix(f"{runs.root}/"))

    monkeypatch.setattr(os, "fsync", note)
    for number, step in enumerate([first_sync, growing_sync, replay], start=1):
        step(runs)
        manifest = read_manifest(runs.storage, SOURCE_ID, runs.state().manifest)
        assert manifest is not None and manifest.written, number
        # A file that is put in its place at once has another name until then.
        at = next(n for n, path in enumerate(order) if f"{manifest.number:010d}.json" in path)
        moved = [p.location for p in manifest.partitions if p.left]
        copied = [f for place in moved for f in runs.storage.files(place) if step is growing_sync]
        assert {*manifest.written} <= {*order[:at]}
        assert {file.path for file in copied} <= {*order[:at]}
        assert {path.rpartition("/")[0] for path in manifest.written} <= {*order[:at]}


@pytest.mark.parametrize("many", [0, 500])
def test_a_file_of_state_or_catalog_is_on_the_disk_before_it_is_in_its_place(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    settled: set[str] = set()
    placed: list[str] = []

    def sync_disk(at: str) -> bool:
        settled.update(str(path) for path in Path(at).rglob(".*"))
        return True

    def noted(put: Callable[[str, str], None]) -> Callable[[str, str], None]:
        def noting(source: str, target: str) -> None:
            if paths.STATE in target and "/ids/" not in target:  # those are settled with the data
                assert source in settled, target
                placed.append(target)
            put(source, target)

        return noting

    monkeypatch.setattr(local, "MANY", many)
    monkeypatch.setattr(local, "sync_disk", sync_disk)
    monkeypatch.setattr(local, "sync_path", settled.add)
    for name in ("link", "replace"):
        monkeypatch.setattr(os, name, noted(getattr(os, name)))
    first_sync(runs)
    replay(runs)
    catalog = str(runs.root / paths.CATALOG)
    tables = {path.split("/")[-3] for path in placed if path.startswith(catalog)}
    assert {"track_order", "identify"} <= tables


@pytest.mark.parametrize("many", [0, 500])
def test_a_file_that_is_not_there_stops_the_commit(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    monkeypatch.setattr(local, "MANY", many)

    runs.flow = flow(after_load=lambda job, files: os.unlink(job.storage.full(files[0].path)))
    with pytest.raises(FileNotFoundError):
        first_sync(runs)
    assert runs.state().manifest == 0
    runs.flow = InProcess
    assert runs.sync().row_count == 3
