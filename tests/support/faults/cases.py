"""Steps that are interrupted, and the places where their lakes are."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from eventlake.storage import LocalStorage
from eventlake.storage.s3 import S3Storage
from tests.support.faults.failing_storage import FailingS3Storage, FailingStorage, Faults
from tests.support.faults.faults import Case
from tests.support.lakes.archive import identify, track
from tests.support.lakes.retyping import days_of_a_replay, request_type
from tests.support.lakes.runs import Runs
from tests.support.servers.aws import AwsServer

COLUMN = "track_order.n"


def nothing(runs: Runs) -> None:
    """An empty lake."""


def first_sync(runs: Runs) -> None:
    """Two day folders, so that one is published when the other breaks off."""
    runs.archive.day("2026-10-01").file(
        "a",
        track("Order", "m1", "2026-10-01T07:00", price=1),
        identify("m2", "2026-10-01T07:00"),
        "no JSON",
    )
    runs.archive.day("2026-10-02").file(
        "a",
        track("Order", "m3", "2026-10-01T07:10", price=2),
        track("Order", "m1", "2026-10-02T07:00", price=1),
    )
    runs.sync()


def growing_sync(runs: Runs) -> None:
    """New columns; a partition gets one file more, another gets two and moves with what it held."""
    day = runs.archive.day("2026-10-02")
    day.file("b", track("Order", "m4", "2026-10-01T07:20", price="cheap", size="L"))
    day.file(
        "c",
        track("Order", "m5", "2026-10-01T07:30", price=1),
        track("Order", "m1", "2026-10-01T07:30", price=1),
        identify("m6", "2026-10-01T07:30"),
    )
    runs.sync()
    [grown] = runs.partitions("identify").values()
    [moved] = runs.partitions("track_order").values()
    assert ("/_v/" in grown.location, grown.files) == (False, 2)
    assert ("/_v/" in moved.location, moved.files) == (True, 4)


def replay(runs: Runs) -> None:
    """Two days, one after the other."""
    runs.replay("2026-10-01", "2026-10-03")


def replay_of_one_table(runs: Runs) -> None:
    runs.replay("2026-10-01", "2026-10-03", "track_order")


def two_days(runs: Runs) -> None:
    """Whole numbers, but for one that is rescued."""
    for day in ("2026-10-01", "2026-10-02"):
        runs.archive.day(day).file("a", track("Order", day, f"{day}T07:00", n=1))
    runs.sync()
    runs.archive.day("2026-10-02").file("b", track("Order", "text", "2026-10-01T07:00", n="two"))
    runs.sync()


def requested(runs: Runs) -> None:
    two_days(runs)
    make_request(runs)


def make_request(runs: Runs) -> None:
    request_type(runs, COLUMN, "string")


def switch_of_types(runs: Runs) -> None:
    runs.replay("2026-10-01", "2026-10-03")


def half_replayed(runs: Runs) -> None:
    """One day has its shadows, the other has none."""
    requested(runs)
    days = days_of_a_replay(runs, "2026-10-01", "2026-10-03")
    next(days)
    days.close()


def sync_amid_a_switch(runs: Runs) -> None:
    """Into partitions with shadows and without, old and new; some get one file, some get two."""
    day = runs.archive.day("2026-10-03")
    day.file(
        "a",
        track("Order", "late a", "2026-10-01T07:00", n=3),
        track("Order", "late b", "2026-10-02T07:00", n=4),
        track("Order", "new a", "2026-10-01T12:00", n=5),
    )
    day.file("b", track("Order", "late c", "2026-10-01T07:00", n=6, more="x"))
    runs.sync()


def sync_and_replay(runs: Runs) -> None:
    runs.sync()
    runs.replay("2026-10-01", "2026-10-04")


def scattered(runs: Runs) -> None:
    """Partitions of several files, some of them written before the table had all its columns."""
    for number, name in enumerate("abc"):
        runs.archive.day("2026-10-01").file(
            name,
            track("Order", f"m{number}", f"2026-10-01T07:{30 - number}", **{name: number}),
            track("Order", f"n{number}", f"2026-10-02T07:{30 - number}", n=number),
            identify(f"i{number}", f"2026-10-01T07:{10 + number}"),
        )
        runs.sync()


def compaction(runs: Runs) -> None:
    runs.compact()


SYNCS = (Case(nothing, first_sync, Runs.sync), Case(first_sync, growing_sync, Runs.sync))
REPLAYS = (
    Case(first_sync, replay, replay, once=True),
    Case(first_sync, replay_of_one_table, replay_of_one_table, once=True),
)
CHANGES_OF_TYPES = (
    Case(two_days, make_request, make_request, COLUMN),
    Case(requested, switch_of_types, switch_of_types, COLUMN, once=True),
    Case(half_replayed, sync_amid_a_switch, sync_and_replay, COLUMN),
)
COMPACTIONS = (Case(scattered, compaction, compaction),)
CASES = (*SYNCS, *REPLAYS, *CHANGES_OF_TYPES, *COMPACTIONS)


class Place(Protocol):
    @property
    def kind(self) -> str: ...

    def new(self) -> Runs:
        """An empty lake."""
        ...

    def copy(self, base: Runs, name: str) -> Runs:
        """The same lake once more."""
        ...

    def fail(self, runs: Runs, faults: Faults) -> None: ...

    def heal(self, runs: Runs) -> None: ...

    def look(self, runs: Runs) -> Runs:
        """What lies there now, where it can be looked at and swept at no cost."""
        ...

    def forget(self, runs: Runs) -> None:
        """It is not needed any more."""
        ...


@dataclass(frozen=True)
class Folders:
    """Lakes in folders of one folder."""

    root: Path
    kind: str = "folder"

    def new(self) -> Runs:
        base = self.root / "base"
        base.mkdir()
        return Runs(base)

    def copy(self, base: Runs, name: str) -> Runs:
        shutil.copytree(base.root, self.root / name)
        return Runs(self.root / name, first_run=10)

    def fail(self, runs: Runs, faults: Faults) -> None:
        runs.storage = FailingStorage(str(runs.root), faults)

    def heal(self, runs: Runs) -> None:
        runs.storage = LocalStorage(str(runs.root))

    def look(self, runs: Runs) -> Runs:
        return runs

    def forget(self, runs: Runs) -> None:
        shutil.rmtree(runs.root)


class BucketRuns(Runs):
    """Runs over a bucket, in which raw files arrive whatever becomes of the runs."""

    def _carry_archive(self) -> None:
        failing, self.storage = self.storage, S3Storage(self.storage.uri)
        super()._carry_archive()
        self.storage = failing


@dataclass(frozen=True)
class Bucket:
    """Lakes below prefixes of one bucket; what is not under test goes past the network."""

    root: Path
    aws: AwsServer
    name: str
    kind: str = "bucket"

    def new(self) -> Runs:
        base = self.root / "base"
        base.mkdir()
        return BucketRuns(base, store=S3Storage(f"s3://{self.name}/base"))

    def copy(self, base: Runs, name: str) -> Runs:
        shutil.copytree(base.root, self.root / name)
        self.aws.put(self.name, {f"{name}/{path}": data for path, data in self._content(base)})
        store = S3Storage(f"s3://{self.name}/{name}")
        return BucketRuns(self.root / name, first_run=10, store=store)

    def _content(self, runs: Runs) -> Iterator[tuple[str, bytes]]:
        prefix = f"{runs.root.name}/"
        for key, data in self.aws.content(self.name, prefix).items():
            yield key.removeprefix(prefix), data

    def fail(self, runs: Runs, faults: Faults) -> None:
        runs.storage = FailingS3Storage(runs.storage.uri, faults=faults)

    def heal(self, runs: Runs) -> None:
        runs.storage = S3Storage(runs.storage.uri)

    def look(self, runs: Runs) -> Runs:
        """All its objects as files, as they are in a lake in a folder."""
        folder = self.root / "seen"
        shutil.rmtree(folder, ignore_errors=True)
        for path, data in self._content(runs):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        return Runs(folder)

    def forget(self, runs: Runs) -> None:
        shutil.rmtree(runs.root)
        self.aws.forget(self.name, f"{runs.root.name}/")
