"""What is broken off: syncs, replays, changes of types, and compactions."""

from tests.support.faults.faults import Case
from tests.support.lakes.archive import identify, order
from tests.support.lakes.retyping import days_of_a_replay, request_type
from tests.support.lakes.runs import Runs

COLUMN = "track_order.n"


def nothing(runs: Runs) -> None:
    """An empty lake."""


def first_sync(runs: Runs) -> None:
    """Two day folders, so that one is published when the other breaks off."""
    runs.archive.day("2026-10-01").file(
        "a", order("m1", "2026-10-01T07:00", price=1), identify("m2", "2026-10-01T07:00"), "no JSON"
    )
    runs.load(
        "2026-10-02",
        order("m3", "2026-10-01T07:10", price=2),
        order("m1", "2026-10-02T07:00", price=1),
    )


def growing_sync(runs: Runs) -> None:
    """New columns; a partition gets one file more, another gets two and moves with what it held."""
    day = runs.archive.day("2026-10-02")
    day.file("b", order("m4", "2026-10-01T07:20", price="cheap", size="L"))
    day.file(
        "c",
        order("m5", "2026-10-01T07:30", price=1),
        order("m1", "2026-10-01T07:30", price=1),
        identify("m6", "2026-10-01T07:30"),
    )
    runs.sync()
    [grown] = runs.partitions("identify").values()
    [moved] = runs.partitions("track_order").values()
    assert ("/versions/" in grown.location, grown.files) == (False, 2)
    assert ("/versions/" in moved.location, moved.files) == (True, 4)


def replay(runs: Runs) -> None:
    """Two days, one after the other."""
    runs.replay("2026-10-01", "2026-10-03")


def replay_of_one_table(runs: Runs) -> None:
    runs.replay("2026-10-01", "2026-10-03", "track_order")


def two_days(runs: Runs) -> None:
    """Whole numbers, but for one that is rescued."""
    for day in ("2026-10-01", "2026-10-02"):
        runs.archive.day(day).file("a", order(day, f"{day}T07:00", n=1))
    runs.sync()
    runs.load("2026-10-02", order("text", "2026-10-01T07:00", n="two"), name="b")


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
        order("late a", "2026-10-01T07:00", n=3),
        order("late b", "2026-10-02T07:00", n=4),
        order("new a", "2026-10-01T12:00", n=5),
    )
    day.file("b", order("late c", "2026-10-01T07:00", n=6, more="x"))
    runs.sync()


def sync_and_replay(runs: Runs) -> None:
    runs.sync()
    runs.replay("2026-10-01", "2026-10-04")


def scattered(runs: Runs) -> None:
    """Partitions of several files, some of them written before the table had all its columns."""
    for number, name in enumerate("abc"):
        runs.load(
            "2026-10-01",
            order(f"m{number}", f"2026-10-01T07:{30 - number}", **{name: number}),
            order(f"n{number}", f"2026-10-02T07:{30 - number}", n=number),
            identify(f"i{number}", f"2026-10-01T07:{10 + number}"),
            name=name,
        )


def compaction(runs: Runs) -> None:
    runs.compact()


def compacted(runs: Runs) -> None:
    scattered(runs)
    compaction(runs)


def homecoming(runs: Runs) -> None:
    runs.come_home()


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
HOMECOMINGS = (Case(compacted, homecoming, homecoming),)
CASES = (*SYNCS, *REPLAYS, *CHANGES_OF_TYPES, *COMPACTIONS, *HOMECOMINGS)
