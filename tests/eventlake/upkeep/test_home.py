"""Partitions return to their documented folders, and people who read these paths see every row."""

import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventlake.rules import paths
from eventlake.runs.clean_up import clean_up
from eventlake.storage import Storage
from tests.support.faults.cases import scattered
from tests.support.lakes.archive import order
from tests.support.lakes.retyping import request_type
from tests.support.lakes.runs import SOURCE_ID, Runs
from tests.support.oracles.invariants import check_invariants, check_sweep

TABLE = paths.table_folder(SOURCE_ID, "track_order")
VERSIONS = paths.versions(SOURCE_ID)


def by_path(runs: Runs) -> list[str]:
    """The ids that a glob of the documented folder finds."""
    return sorted(row["message_id"] for row in runs.read(TABLE))


def clean(runs: Runs, hours: float) -> None:
    at = datetime.now(UTC) + timedelta(hours=hours)
    clean_up(runs.storage, runs.catalog, runs.source, runs.state(), at)


def test_a_compacted_partition_returns_home_after_the_grace_period(anywhere: Runs) -> None:
    runs = anywhere
    scattered(runs)
    ids = runs.ids("track_order")
    runs.compact()
    assert all(VERSIONS in p.location for p in runs.partitions("track_order").values())
    assert (runs.come_home(23), by_path(runs)) == (0, ids)
    clean(runs, 25)
    assert by_path(runs) == ids  # the old files stay until the new ones take their place
    assert runs.come_home(25) == 3
    assert by_path(runs) == ids == runs.ids("track_order")
    assert all(TABLE in p.location for p in runs.partitions("track_order").values())
    assert all(len(names) == 1 for names in runs.files("track_order").values())
    assert runs.storage.files(VERSIONS)  # for queries that began before
    clean(runs, 23)
    assert runs.storage.files(VERSIONS)
    clean(runs, 25)
    assert runs.storage.files(VERSIONS) == []
    assert runs.come_home(99) == 0
    check_invariants(runs)
    runs.load("2026-10-01", order("late", "2026-10-01T07:00"), name="late")
    assert by_path(runs) == sorted([*ids, "late"])


def test_an_emptied_partition_that_is_filled_again_returns_home(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    day.file("a", order("m1", "2026-10-01T07:00"), order("m2", "2026-10-01T08:00"))
    runs.sync()
    day.file("a", order("m1", "2026-10-01T07:00"))
    runs.replay("2026-10-01", "2026-10-02")
    day.file("b", order("m3", "2026-10-01T08:30"))
    runs.sync()
    assert by_path(runs) == ["m1", "m2"]
    assert runs.come_home() == 2
    assert by_path(runs) == runs.ids("track_order") == ["m1", "m3"]
    check_sweep(runs)
    assert by_path(runs) == ["m1", "m3"]


def test_a_partition_that_is_emptied_while_it_is_away_leaves_its_folder(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    day.file("a", order("m1", "2026-10-01T07:00"), order("m2", "2026-10-01T08:00"))
    runs.sync()
    runs.replay("2026-10-01", "2026-10-02")
    day.file("a", order("m1", "2026-10-01T07:00"))
    runs.replay("2026-10-01", "2026-10-02")
    assert by_path(runs) == ["m1", "m2"]
    clean(runs, 25)
    assert by_path(runs) == ["m1"]


def test_files_of_others_keep_a_partition_away_and_are_named(runs: Runs) -> None:
    scattered(runs)
    runs.compact()
    theirs = f"{TABLE}/day=2026-10-01/hr=07/notes.parquet"
    runs.storage.write(theirs, b"not ours")
    assert runs.come_home() == 2
    [warning] = runs.warnings
    assert "holds files of others (notes.parquet)" in warning
    assert runs.storage.read(theirs) == b"not ours"
    assert len(runs.rows("track_order")) == 6


def test_files_of_others_stay_in_a_folder_that_is_cleaned(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    day.file("a", order("m1", "2026-10-01T07:00"), order("m2", "2026-10-01T08:00"))
    runs.sync()
    day.file("a", order("m1", "2026-10-01T07:00"))
    theirs = f"{TABLE}/day=2026-10-01/hr=08/notes.parquet"
    runs.storage.write(theirs, b"not ours")
    runs.replay("2026-10-01", "2026-10-02")
    clean(runs, 25)
    assert [file.path for file in runs.storage.files(theirs.rpartition("/")[0])] == [theirs]


def test_a_partition_that_is_not_as_published_stays_where_it_is(runs: Runs) -> None:
    scattered(runs)
    runs.compact()
    [location, _] = sorted(runs.files("track_order"))
    runs.storage.delete(f"{location}/{runs.files('track_order')[location][0]}")
    assert runs.come_home() == 2
    assert "does not hold the files that were published" in runs.warnings[0]


def test_version_folders_of_an_earlier_release_return_home(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = f"segment-data/data/{SOURCE_ID}/_v"
    scattered(runs)
    with monkeypatch.context() as patch:
        patch.setattr(paths, "versions", lambda _: old)
        runs.compact()
    assert runs.storage.files(old)
    ids = runs.ids("track_order")
    assert runs.come_home() == 3
    check_sweep(runs)
    assert runs.storage.files(old) == []
    assert by_path(runs) == runs.ids("track_order") == ids


class PathReader(threading.Thread):
    """Globs the documented folder of a table all the time; what is wrong, and for how long."""

    def __init__(self, storage: Storage, hours: int) -> None:
        super().__init__(daemon=True)
        self.storage, self.hours = storage, hours
        self.looks = 0
        self.wrong: Counter[str] = Counter()
        self.longest = 0.0
        self.over = threading.Event()

    def run(self) -> None:
        since: float | None = None
        while not self.over.is_set():
            problem = self.look()
            now = time.monotonic()
            self.looks += 1
            if problem is None:
                since = None
                continue
            self.wrong[problem] += 1
            since = now if since is None else since
            self.longest = max(self.longest, now - since)

    def look(self) -> str | None:
        ids: Counter[str] = Counter()
        hours: set[str] = set()
        for file in self.storage.files(TABLE):
            try:
                with self.storage.open_input(file.path) as stream:
                    ids.update(pq.read_table(stream, columns=["message_id"])[0].to_pylist())
            except (OSError, pa.ArrowException):
                return "changed while it was read"
            hours.add(file.path.rpartition("/")[0])
        if any(times > 1 for times in ids.values()):
            return "rows twice"
        return None if len(hours) >= self.hours else "a partition missing"


@pytest.mark.parametrize(
    "storage", ["folder", pytest.param("bucket", marks=pytest.mark.soak)], indirect=True
)
def test_a_reader_of_paths_sees_every_partition_once(anywhere: Runs) -> None:
    """Through syncs, replays, changes of types and compactions, with every homecoming at once."""
    runs = anywhere
    day = runs.archive.day("2026-10-01")
    day.file("0", *(order(f"0-{n}", f"2026-10-01T{7 + n:02}:00", n=n) for n in range(3)))
    runs.sync()
    reader = PathReader(runs.storage, hours=3)
    reader.start()
    steps = [
        lambda: runs.replay("2026-10-01", "2026-10-02"),
        lambda: runs.compact(),
        lambda: request_type(runs, "track_order.n", "string"),
        lambda: runs.replay("2026-10-01", "2026-10-02", "track_order"),
        lambda: None,
    ]
    for number in range(1, 11):
        day.file(
            f"{number}",
            *(order(f"{number}-{n}", f"2026-10-01T{7 + n:02}:{number:02}") for n in range(3)),
        )
        runs.sync()
        steps[number % len(steps)]()
        runs.come_home()
        clean(runs, 25)
        assert by_path(runs) == runs.ids("track_order")  # at rest: neither more nor less
        assert len(by_path(runs)) == 3 * (number + 1)
    reader.over.set()
    reader.join()
    print(f"{reader.looks} looks, {dict(reader.wrong)}, at most {reader.longest:.3f} s")
    assert reader.looks > 10
    assert reader.longest < 2
    check_invariants(runs)
