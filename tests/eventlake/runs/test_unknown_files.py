"""A state that is older than the data: no row is doubled, and what cannot be mended is named."""

import re
import shutil
from collections.abc import Callable

import pytest

from eventlake.rules import paths
from eventlake.rules.errors import StateError
from eventlake.sql import LakeSql
from eventlake.upkeep.recovery import rebuild
from tests.support.faults.flows import flow, warned_of_conflict
from tests.support.lakes.archive import identify, order, page
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.retyping import lake_of, no_lease_is_held
from tests.support.lakes.runs import SOURCE_ID, Runs
from tests.support.oracles.invariants import check_invariants, check_sweep

STATE = "segment-data/_state"
HOUR = "segment-data/data/S1/segment_type=track_order/day=2026-10-01/hr=07"


def load(runs: Runs, name: str, **properties: object) -> None:
    runs.archive.day("2026-10-01").file(
        name,
        *(order(f"{name}-{n}", f"2026-10-01T07:{n:02}", **properties) for n in range(5)),
        order(f"{name}-next", "2026-10-02T08:00", **properties),
        identify(f"{name}-i", "2026-10-01T07:30"),
    )


def lose(runs: Runs, lost: Callable[[], object], *parts: str) -> None:
    """Do something, and put the state, or parts of it, back as it was before."""
    state, backup = runs.root / STATE, runs.root / "backup"
    shutil.copytree(state, backup)
    lost()
    for part in parts or ("",):
        if (backup / part).is_dir():
            shutil.rmtree(state / part)
            shutil.copytree(backup / part, state / part)
        else:
            shutil.copy(backup / part, state / part)
    shutil.rmtree(backup)


def syncs(runs: Runs, *names: str, **properties: object) -> Callable[[], None]:
    def sync() -> None:
        for name in names:
            load(runs, name, **properties)
            runs.sync()

    return sync


@pytest.mark.parametrize(
    "lost", [["b"], ["b", "c"], ["b", "c", "d"]], ids=["one sync", "two syncs", "three"]
)
def test_files_of_lost_syncs_are_added_and_nothing_is_doubled(runs: Runs, lost: list[str]) -> None:
    syncs(runs, "a")()
    lose(runs, syncs(runs, *lost))
    load(runs, "z")
    runs.sync()
    assert any("The state of source S1 is older than its data" in w for w in runs.warnings)
    wanted = sorted(f"{name}-{n}" for name in ["a", *lost, "z"] for n in (*range(5), "next"))
    assert runs.ids("track_order") == wanted
    check_invariants(runs)
    runs.sync()
    runs.replay("2026-10-01", "2026-10-03")
    assert runs.ids("track_order") == wanted
    check_invariants(runs)
    check_sweep(runs)


def test_a_lost_sync_of_new_partitions_and_late_copies(runs: Runs) -> None:
    """A copy of a late file was dropped by a sync that is lost; now it comes first."""
    syncs(runs, "a")()

    def lost() -> None:
        runs.load("2026-10-03", order("late", "2026-10-03T09:00"), name="b")
        runs.load(
            "2026-10-02",
            order("late", "2026-10-02T10:00"),
            order("m", "2026-10-02T08:30"),
            name="c",
        )

    lose(runs, lost)
    runs.sync()
    assert runs.ids("track_order").count("late") == 1
    check_invariants(runs)


@pytest.mark.parametrize("heal", ["recover", "replay"])
def test_a_table_that_the_state_lost_stops_the_run(runs: Runs, heal: str) -> None:
    syncs(runs, "a")()

    def lost() -> None:
        runs.load("2026-10-01", page("p1", "2026-10-01T07:00"), name="b")

    lose(runs, lost)
    runs.load("2026-10-01", identify("i2", "2026-10-01T07:00"), name="b")
    runs.archive.day("2026-10-01").file("c", page("p1", "2026-10-01T07:00"))
    with pytest.raises(StateError, match="datalake recover --from-data --source shop"):
        runs.sync()
    if heal == "recover":
        rebuild(lake_of(runs), runs.source, no_lease_is_held)
    else:
        runs.replay("2026-10-01", "2026-10-02")
        runs.come_home()
    runs.load("2026-10-01", page("p2", "2026-10-01T07:10"), name="d")
    documented = runs.read(paths.table_folder(SOURCE_ID, "page"))
    assert sorted(row["message_id"] for row in documented) == runs.ids("page") == ["p1", "p2"]
    check_invariants(runs)


def test_a_lost_compaction_and_homecoming_leave_the_folder_as_it_is(runs: Runs) -> None:
    for name in "abc":
        syncs(runs, name)()

    def lost() -> None:
        runs.compact()
        assert runs.come_home()

    lose(runs, lost)
    load(runs, "z")
    runs.sync()
    wanted = sorted(f"{name}-{n}" for name in "abcz" for n in (*range(5), "next"))
    assert runs.ids("track_order") == wanted
    check_invariants(runs)


def copy_of(runs: Runs, name: str, folder: str = HOUR) -> str:
    [file] = runs.storage.files(HOUR)[:1]
    runs.storage.write(f"{folder}/{name}", runs.storage.read(file.path) or b"")
    return f"{folder}/{name}"


REFUSED: dict[str, tuple[Callable[[Runs], object], str]] = {
    "not called like ours": (lambda r: copy_of(r, "mine.parquet"), "not called like a file of"),
    "a copy": (lambda r: copy_of(r, "R9-0-0.parquet"), "rows that the lake has already"),
    "not whole": (
        lambda r: r.storage.write(f"{HOUR}/R9-0-0.parquet", b"PAR1 and no more"),
        "cannot be taken in",
    ),
    "of another hour": (
        lambda r: copy_of(r, "R9-0-0.parquet", HOUR.replace("10-01/hr=07", "10-02/hr=08")),
        "it holds rows of 2026-10-01T07",
    ),
    "new columns": (
        lambda r: lose(r, syncs(r, "b", coupon="x")),
        "properties_coupon: string in the file, None in the table",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_proven_stops_the_run_until_its_day_is_replayed(runs: Runs, case: str) -> None:
    syncs(runs, "a")()
    plant, words = REFUSED[case]
    plant(runs)
    before = runs.state().manifest
    load(runs, "z")
    with pytest.raises(StateError, match=words) as refused:
        runs.sync()
    replay = r"datalake replay --source shop --from 2026-10-0[12]T00 --to 2026-10-0[23]T00"
    assert re.search(replay, str(refused.value))
    assert runs.state().manifest == before
    runs.replay("2026-10-01", "2026-10-03")
    runs.sync()
    names = "abz" if case == "new columns" else "az"
    wanted = sorted(f"{name}-{n}" for name in names for n in (*range(5), "next"))
    assert runs.ids("track_order") == wanted
    check_invariants(runs)


def test_files_of_a_run_that_commits_meanwhile_are_planned_around(runs: Runs) -> None:
    """It has moved its files into the folder, with a new column, and no more than that yet."""
    syncs(runs, "a")()
    load(runs, "z")

    def overtake(*_: object) -> None:
        runs.flow = InProcess
        runs.storage.delete(paths.lease(SOURCE_ID))
        applied = [paths.state_file(SOURCE_ID).removeprefix(f"{STATE}/"), "catalog"]
        lose(runs, syncs(runs, "b", coupon="x"), *applied)

    runs.flow = flow(after_stage=overtake)
    runs.sync()
    assert warned_of_conflict(runs)
    wanted = sorted(f"{name}-{n}" for name in "abz" for n in (*range(5), "next"))
    assert runs.ids("track_order") == wanted
    check_invariants(runs)


def test_a_file_deleted_by_hand_is_named_by_queries_and_the_next_run(runs: Runs) -> None:
    syncs(runs, "a", "b")()
    gone = runs.storage.files(HOUR)[0]
    runs.storage.delete(gone.path)
    with pytest.raises(StateError, match=rf"has 1 of 2 files .* \({gone.name} is missing\)"):
        LakeSql(runs.catalog, runs.storage).query("SELECT count(*) FROM shop.track_order")
    load(runs, "c")
    runs.sync()
    [warning] = runs.warnings
    assert f"lacks 1 of its published files ({gone.name})" in warning
    runs.replay("2026-10-01", "2026-10-02")
    assert len(runs.ids("track_order")) == 18
    check_invariants(runs)


def test_files_that_readers_ignore_do_not_matter(runs: Runs) -> None:
    syncs(runs, "a")()
    runs.storage.write(f"{HOUR}/_SUCCESS", b"")
    syncs(runs, "b")()
    assert runs.warnings == []
