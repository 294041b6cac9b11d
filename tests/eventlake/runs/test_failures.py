"""Runs that fail: failed checks, a full disk, power cuts. Nothing wrong is published."""

import errno
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from eventlake.load.record_log import LogJob, NotLoaded
from eventlake.load.seen import Seen
from eventlake.load.stage_job import StageJob
from eventlake.load.write import LoadedFile, LoadJob
from eventlake.rules import paths
from eventlake.rules.errors import ConservationError
from eventlake.runs.failures import failure_of
from eventlake.runs.verify import CHECKS, ChecksFailed
from eventlake.state import lease
from eventlake.state.manifest import read_manifest
from eventlake.storage import LocalStorage, local
from eventlake.storage.base import Change
from tests.support.faults.cases import first_sync, growing_sync, replay
from tests.support.faults.faults import NOTHING_LEFT, left
from tests.support.faults.flows import Raises, flow
from tests.support.lakes.archive import identify, order
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.runs import SOURCE_ID, Runs


def changed(**fields: Callable[[LoadedFile], object]) -> type[InProcess]:
    """Reports its first file with other fields."""

    def change(_: LoadJob, files: list[LoadedFile]) -> list[LoadedFile]:
        first, *others = files
        new = {name: field(first) for name, field in fields.items()}
        return [msgspec.structs.replace(first, **new), *others]

    return flow(after_load=change)


def forget_a_line(_: StageJob, seen: list[Seen]) -> None:
    """Reads a line that ends in none of the counts."""
    seen[0].files[0].rows += 1


LOSES_A_ROW = changed(rows=lambda file: file.rows - 1)
LOSES_A_LINE = flow(after_stage=forget_a_line)
WRITES_ANOTHER_TYPE = changed(
    type_problems=lambda _: ("event: int64 in the file, string in the table",)
)
WRITES_THE_WRONG_ROWS = changed(checksum=lambda file: file.checksum ^ 1)
RUNS_OUT_OF_DISK = flow(after_load=Raises(OSError("no space left")))
IS_CANCELLED = flow(before_load=Raises(KeyboardInterrupt()))


@pytest.fixture
def archived(runs: Runs) -> Runs:
    runs.archive.day("2026-10-01").file(
        "a", order("m1", "2026-10-01T07:00"), identify("m2", "2026-10-01T07:00")
    )
    return runs


def line_of(runs: Runs, run: str) -> dict[str, Any]:
    """A failed run has the line of the source alone."""
    [line] = runs.reports()[run]
    assert line["type"] == "source"
    return line


@pytest.mark.parametrize(
    ("flow", "failed"),
    [
        (LOSES_A_ROW, {"dedup", "conservation"}),
        (WRITES_ANOTHER_TYPE, {"types"}),
        (WRITES_THE_WRONG_ROWS, {"dedup"}),
    ],
)
def test_a_check_that_fails_stops_the_run_and_names_itself(
    archived: Runs, flow: type[InProcess], failed: set[str]
) -> None:
    archived.flow = flow
    with pytest.raises(ChecksFailed) as caught:
        archived.sync()
    results = caught.value.results
    assert {result.check for result in results if not result.passed} == failed
    assert {(result.table, result.check) for result in results} == {
        (table, check) for table in ("shop.identify", "shop.track_order") for check in CHECKS
    }
    line = line_of(archived, "R1")
    assert (line["status"], line["error_code"]) == ("failed", "Segment.Internal")
    assert all(name in line["error"] for name in failed)
    assert (line["row_count"], line["rows_in"]) == (0, 0)


@pytest.mark.parametrize(
    ("flow", "error", "reported"),
    [
        (LOSES_A_ROW, ChecksFailed, "conservation"),
        (WRITES_ANOTHER_TYPE, ChecksFailed, "types"),
        (
            LOSES_A_LINE,
            ConservationError,
            "The rows of the source do not balance: 3 came in, but 2",
        ),
        (RUNS_OUT_OF_DISK, OSError, "OSError: no space left"),
        (IS_CANCELLED, KeyboardInterrupt, "The run was cancelled"),
    ],
)
def test_what_may_not_be_published_leaves_no_trace(
    archived: Runs, flow: type[InProcess], error: type[BaseException], reported: str
) -> None:
    archived.flow = flow
    with pytest.raises(error):
        archived.sync()
    line = line_of(archived, "R1")
    assert (line["status"], line["error_code"]) == ("failed", "Segment.Internal")
    assert reported in line["error"]
    assert archived.tables() == []
    assert (archived.ledger(), archived.index(), archived.state().manifest) == ({}, {}, 0)
    assert archived.storage.files("segment-stage") == []
    assert archived.storage.files("segment-data/data") == []
    assert archived.storage.files(paths.open_runs(SOURCE_ID)) == []
    assert archived.storage.read(paths.lease(SOURCE_ID)) is None
    archived.flow = InProcess
    report = archived.sync()
    assert (report.row_count, report.duplicates) == (2, 0)


def test_a_sync_that_fails_in_its_second_folder_keeps_and_counts_the_first(archived: Runs) -> None:
    archived.archive.day("2026-10-02").file("a", order("m3", "2026-10-02T07:00"))

    archived.flow = flow(before_load=Raises(OSError("no space left"), at=2))
    with pytest.raises(OSError, match="no space"):
        archived.sync()
    line = line_of(archived, "R1")
    assert (line["status"], line["row_count"], line["rows_in"]) == ("failed", 2, 2)
    assert archived.ids("track_order") == ["m1"]
    archived.flow = InProcess
    assert archived.sync().row_count == 1
    assert archived.ids("track_order") == ["m1", "m3"]


def test_a_replay_that_fails_leaves_the_range_as_it_was(archived: Runs) -> None:
    archived.sync()
    before = archived.partitions("track_order")
    archived.flow = LOSES_A_ROW
    with pytest.raises(ChecksFailed):
        archived.replay("2026-10-01", "2026-10-02")
    assert archived.partitions("track_order") == before
    line = line_of(archived, "R2")
    assert (line["replay"], line["status"]) == (True, "failed")


@dataclass(frozen=True)
class SmallDisk(LocalStorage):
    """A disk with room for so many bytes."""

    capacity: int = 0

    def _need(self, more: int) -> None:
        lying = sum(os.path.getsize(path) for path in Path(self.uri).rglob("*") if path.is_file())
        if lying + more > self.capacity:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.uri)

    def write(self, path: str, data: bytes) -> None:
        self._need(len(data))
        super().write(path, data)

    def create(self, path: str, data: bytes) -> bool:
        self._need(len(data))
        return super().create(path, data)

    def update(self, path: str, change: Change) -> None:
        def fitting(data: bytes | None) -> bytes | None:
            changed = change(data)
            self._need(len(changed or b""))
            return changed

        super().update(path, fitting)

    def create_all(self, files: Sequence[tuple[str, bytes]]) -> list[bool]:
        return [self.create(path, data) for path, data in files]

    def update_all(self, changes: Sequence[tuple[str, Change]]) -> None:
        for path, change in changes:
            self.update(path, change)

    @contextmanager
    def open_output(self, path: str) -> Iterator[Any]:
        with super().open_output(path) as out:
            yield out
            self._need(0)

    def write_unique(self, path: str, data: bytes | memoryview) -> None:
        super().write_unique(path, data)
        self._need(0)

    def copy(self, source: str, target: str) -> None:
        self._need(os.path.getsize(self.full(source)))
        super().copy(source, target)


def used(runs: Runs) -> int:
    return sum(path.stat().st_size for path in runs.root.rglob("*") if path.is_file())


@pytest.mark.parametrize("step", [growing_sync, replay])
@pytest.mark.parametrize("room", [0, 1_000, 2_000, 4_000, 8_000, 16_000])
@pytest.mark.usefixtures("small_files")
def test_with_any_space_left_the_next_run_completes_the_work(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, step: Callable[[Runs], None], room: int
) -> None:
    first_sync(runs)
    runs.storage = SmallDisk(str(runs.root), used(runs) + room)
    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(lease, "LIFETIME", timedelta(0))  # whoever fails is dead at once
        step(runs)
    runs.storage = LocalStorage(str(runs.root))
    (Runs.sync if step is growing_sync else replay)(runs)
    ids = {"m1", "m2", "m3", *({"m4", "m5", "m6"} if step is growing_sync else ())}
    assert {*runs.ids("track_order"), *runs.ids("identify")} == ids
    assert left(runs) == NOTHING_LEFT
    assert {lines[0]["status"] for lines in runs.reports().values()} <= {"finished", "failed"}


def test_the_report_of_a_full_disk_has_its_remedy(runs: Runs) -> None:
    """Staging goes first, which makes room for the report."""
    texts = [os.urandom(999).hex() for _ in range(99)]
    lines = (order(text[:9], "2026-10-01T07:00", text=text) for text in texts)
    runs.archive.day("2026-10-01").file("a", *lines)
    runs.storage = SmallDisk(str(runs.root), used(runs) + 60_000)
    with pytest.raises(OSError, match="No space left"):
        runs.sync()
    [line] = runs.reports()["R1"]
    assert line["status"] == "failed"
    assert line["error"].startswith("A disk is full: [Errno 28] No space left on device")
    assert "Make room" in line["error"]
    assert runs.storage.files("segment-stage") == []


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device", "/data/x"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        RuntimeError("Job aborted: java.io.IOException: No space left on device\n\tat java.base"),
        RuntimeError("Traceback:\nOSError: [Errno 28] No space left on device"),
    ],
)
def test_a_full_disk_is_recognised(error: Exception) -> None:
    failure = failure_of(error)
    assert failure.error.startswith("A disk is full: ")
    assert "at java.base" not in failure.error
    assert failure_of(OSError(errno.EIO, "Input/output error")).error.startswith("OSError: ")


def test_files_are_synced_by_one_call(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
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

    def log(self, job: LogJob, rows: NotLoaded) -> None:
        super().log(job, rows)
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


def test_without_that_call_they_are_synced(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    settled: list[str] = []
    monkeypatch.setattr(local, "MANY", 0)
    monkeypatch.setattr(local, "sync_disk", lambda at: False)
    monkeypatch.setattr(local, "sync_path", settled.append)
    first_sync(runs)
    manifest = read_manifest(runs.storage, SOURCE_ID, 1)
    assert manifest is not None
    assert {str(runs.root / path) for path in manifest.written} <= {*settled}


@pytest.mark.usefixtures("small_files")
def test_a_commit_follows_its_synced_files(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def note(handle: int) -> None:
        full = os.readlink(f"/proc/self/fd/{handle}")
        calls.append(full.removeprefix(f"{runs.root}/"))

    monkeypatch.setattr(os, "fsync", note)
    for number, step in enumerate([first_sync, growing_sync, replay], start=1):
        step(runs)
        manifest = read_manifest(runs.storage, SOURCE_ID, runs.state().manifest)
        assert manifest is not None and manifest.written, number
        # A file that is put in its place at once has another name until then.
        at = next(n for n, path in enumerate(calls) if f"{manifest.number:010d}.json" in path)
        moved = [p.location for p in manifest.partitions if p.left]
        copied = [f for place in moved for f in runs.storage.files(place) if step is growing_sync]
        assert {*manifest.written} <= {*calls[:at]}
        assert {file.path for file in copied} <= {*calls[:at]}
        assert {path.rpartition("/")[0] for path in manifest.written} <= {*calls[:at]}


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
def test_a_lost_file_stops_it(runs: Runs, monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    monkeypatch.setattr(local, "MANY", many)

    runs.flow = flow(after_load=lambda job, files: os.unlink(job.storage.full(files[0].path)))
    with pytest.raises(FileNotFoundError):
        first_sync(runs)
    assert runs.state().manifest == 0
    runs.flow = InProcess
    assert runs.sync().row_count == 3
