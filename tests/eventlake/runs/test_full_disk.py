"""A disk that is full: the run fails and says what to do, and nothing is lost."""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from eventlake.runs.failures import failure_of
from eventlake.state import lease
from eventlake.storage import LocalStorage
from eventlake.storage.base import Change
from tests.support.faults.cases import first_sync, growing_sync, replay
from tests.support.faults.faults import NOTHING_LEFT, left
from tests.support.lakes.archive import track
from tests.support.lakes.runs import Runs


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
def test_whatever_room_is_left_the_run_after_it_makes_it_good(
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


def test_the_report_says_that_the_disk_is_full_and_what_to_do(runs: Runs) -> None:
    """Staging goes first, which makes room for the report."""
    texts = [os.urandom(999).hex() for _ in range(99)]
    lines = (track("Order", text[:9], "2026-10-01T07:00", text=text) for text in texts)
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
def test_whoever_tells_it_it_is_recognised(error: Exception) -> None:
    failure = failure_of(error)
    assert failure.error.startswith("A disk is full: ")
    assert "at java.base" not in failure.error


def test_other_troubles_of_a_disk_are_told_as_they_are() -> None:
    assert failure_of(OSError(errno.EIO, "Input/output error")).error.startswith("OSError: ")
