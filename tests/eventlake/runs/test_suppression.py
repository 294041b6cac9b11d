"""Events of suppressed people: in no row, no schema and no log of the lake, but counted."""

from collections import Counter
from typing import Any

import pytest

from eventlake.audit.audit import audit
from eventlake.audit.snapshot import Scope
from eventlake.lake import Lake
from eventlake.records.find import find
from eventlake.rules import paths
from eventlake.runs.replay import replay_units
from eventlake.runs.sync import sync_units
from eventlake.runs.unit import Window
from eventlake.sample import WEB_SHOP, SampleSpec, write_archive
from eventlake.state.manifest import RunKind
from tests.support.faults.flows import Counting, cancel, load_days
from tests.support.lakes.archive import identify, order, page
from tests.support.lakes.retyping import suppress, suppress_only
from tests.support.lakes.runs import Runs, utc

DAY = ("2026-10-01", "2026-10-02")
ZOE = {"userId": "zoe"}
MAX = {"userId": "max"}


def rows_by_user(runs: Runs) -> Counter[Any]:
    rows = (row for table in runs.tables() for row in runs.rows(table, "user_id"))
    return Counter(row["user_id"] for row in rows if row["user_id"] is not None)


def people_in(runs: Runs) -> set[Any]:
    return set(rows_by_user(runs))


def lines_of(runs: Runs, run: str) -> dict[str, dict[str, Any]]:
    """The lines of a run's report, by table; "" is the source's."""
    return {line["table_name"]: line for line in runs.reports()[run]}


def test_their_events_make_no_row_no_column_and_no_table(runs: Runs) -> None:
    suppress(runs.storage, "zoe")
    report = runs.load(
        DAY[0],
        order("m1", "2026-10-01T07:00", n="dear") | ZOE,
        order("m2", "2026-10-01T07:00", n=5) | MAX,
        order("m3", "2026-10-01T07:00", n=6, gift=True) | ZOE,
        identify("m4", "2026-10-01T07:00", plan="pro") | ZOE,
    )
    assert (report.rows_in, report.row_count, report.suppressed) == (4, 1, 3)
    assert runs.tables() == ["track_order"]
    assert ("properties_n", "bigint", "/properties/n") in runs.columns("track_order")
    assert "properties_gift" not in {name for name, _, _ in runs.columns("track_order")}
    assert people_in(runs) == {"max"}
    assert sum(map(len, runs.index().values())) == 1


def test_they_are_counted_for_the_source_and_for_tables_that_are_there(runs: Runs) -> None:
    runs.load(DAY[0], page("m1", "2026-10-01T07:00") | MAX, order("m2", "2026-10-01T07:00") | ZOE)
    suppress(runs.storage, "zoe", visitors=("a1",))
    runs.load(
        DAY[0],
        page("m3", "2026-10-01T08:00") | MAX,
        page("m4", "2026-10-01T08:00") | ZOE,
        page("m4", "2026-10-01T08:00") | ZOE,
        page("m5", "2026-10-01T08:00") | {"anonymousId": "a1"},
        order("m6", "2026-10-01T08:00") | ZOE,
        identify("m7", "2026-10-01T08:00") | ZOE,
        identify(None, "2026-10-01T08:00") | ZOE,
        name="b",
    )
    counts = ("rows_in", "row_count", "rejected", "suppressed")
    found = {t: tuple(map(line.get, counts)) for t, line in lines_of(runs, "R2").items()}
    assert found == {"": (7, 1, 0, 6), "page": (4, 1, 0, 3), "track_order": (1, 0, 0, 1)}


def test_rows_that_are_there_go_with_a_replay_and_come_back_with_another(runs: Runs) -> None:
    runs.archive.day(DAY[0]).file(
        "a", page("m1", "2026-10-01T07:00") | ZOE, order("m2", "2026-10-01T07:00") | ZOE
    )
    runs.load(DAY[0], page("m3", "2026-10-01T09:00") | MAX, name="b")
    suppress(runs.storage, "zoe")
    assert people_in(runs) == {"zoe", "max"}

    report = runs.replay(*DAY)
    assert (report.row_count, report.suppressed) == (1, 2)
    assert people_in(runs) == {"max"}
    assert runs.partitions("track_order") == {}
    assert sum(map(len, runs.index().values())) == 1

    suppress_only(runs.storage, ())
    assert runs.replay(*DAY).suppressed == 0
    assert runs.ids("page") == ["m1", "m3"] and runs.ids("track_order") == ["m2"]


def test_lists_are_for_one_source_or_for_all_and_may_be_switched_off(runs: Runs) -> None:
    suppress(runs.storage, "zoe", source="another")
    suppress(runs.storage, "max", source="S1")
    runs.load(DAY[0], page("m1", "2026-10-01T07:00") | ZOE, page("m2", "2026-10-01T07:00") | MAX)
    assert people_in(runs) == {"zoe"}
    runs.set(suppression=False)
    runs.replay(*DAY)
    assert people_in(runs) == {"zoe", "max"}


def test_the_record_log_has_their_events_without_their_ids(runs: Runs) -> None:
    suppress(runs.storage, "zoe")
    runs.set(skip_events=["page"])
    report = runs.load(
        DAY[0],
        identify("m1", "2026-10-01T07:00") | ZOE,
        page("m2", "2026-10-01T07:00") | ZOE,
        {"type": "delete", "messageId": "m3", "receivedAt": "2026-10-01T07:00", **ZOE},
        '{"type": "track", "userId": "zoe", "broken',
        identify(None, "2026-10-01T07:00") | ZOE,
        page("m4", "2026-10-01T07:00") | MAX,
    )
    assert (report.suppressed, report.rejected, report.skipped) == (3, 2, 1)
    found = find(Lake.open(runs.settings), runs.source, "m1")
    [occurrence] = found.occurrences
    assert occurrence.record["status_message"] == "Its user is suppressed."
    assert found.rows == ()
    (runs.root / paths.tracking("W1", "S1", "R1") / "metadata.json").unlink()
    records = runs.read(paths.tracking("W1", "S1", "R1"))
    assert "zoe" not in str(records)
    told = {record["raw_line"]: record for record in records}
    assert [told[n]["status_message"] for n in (1, 2, 5)] == ["Its user is suppressed."] * 3
    assert [told[n]["identifier"] for n in (1, 2)] == ["m1", "m2"]
    assert [told[n]["record_payload"] is None for n in range(1, 7)] == [True] * 5 + [False]


def test_a_run_keeps_the_lists_that_it_began_with(runs: Runs) -> None:
    for day in ("2026-10-01", "2026-10-02"):
        runs.archive.day(day).file("a", page(f"m{day}", f"{day}T07:00") | ZOE)
    units = sync_units(runs.context())
    next(units)
    suppress(runs.storage, "zoe")
    assert [unit.report.suppressed for unit in units] == [0]
    assert len(runs.ids("page")) == 2

    window = Window(utc("2026-10-01"), utc("2026-10-03"))
    replayed = replay_units(runs.context(RunKind.REPLAY, window), window)
    first = next(replayed)
    suppress_only(runs.storage, ())
    assert [unit.report.suppressed for unit in (first, *replayed)][:2] == [1, 1]


def test_an_interrupted_replay_restarts_if_other_people_are_suppressed(runs: Runs) -> None:
    span = load_days(runs, 3)
    cancel(runs, 2, *span)
    suppress(runs.storage, "somebody", source="another source")
    cancel(runs, 4, *span)  # the rest of it: nobody of this source
    assert any("Resumes the replay" in told for told in runs.logged)
    suppress(runs.storage, "zoe")
    before = Counting.units
    runs.replay(*span)
    assert Counting.units - before == 3
    assert "with other suppressed people" in " ".join(runs.logged)


def test_an_audit_expects_the_result_of_a_replay(runs: Runs) -> None:
    runs.load(DAY[0], page("m1", "2026-10-01T07:00") | ZOE, page("m2", "2026-10-01T07:00") | MAX)
    suppress(runs.storage, "zoe")
    lake, scope = Lake.open(runs.settings), Scope(runs.source)
    before = audit(lake, scope)
    assert (before.agrees, before.total.unexpected, before.total.suppressed) == (False, 1, 1)
    runs.replay(*DAY)
    after = audit(lake, scope)
    assert (after.agrees, after.total.loaded, after.total.suppressed) == (True, 1, 1)


@pytest.fixture
def sample(runs: Runs) -> Runs:
    """Two days of a web shop, of which the first is loaded."""
    spec = SampleSpec(days=2, events_per_day=400, hours=1)
    runs.set(raw=f"segment-logs/{WEB_SHOP.id}")
    write_archive(runs.root, spec, sources=[WEB_SHOP], arrived=1)
    runs.sync()
    write_archive(runs.root, spec, sources=[WEB_SHOP])
    return runs


def test_busy_users_get_no_new_rows_and_lose_all_with_a_replay(sample: Runs) -> None:
    before = rows_by_user(sample)
    users = [user for user, _ in before.most_common(40)]
    suppress(sample.storage, *users)

    synced = sample.sync()
    synced.check_balance()
    rows = rows_by_user(sample)
    assert synced.suppressed > 5
    assert [rows[user] for user in users] == [before[user] for user in users]

    replayed = sample.replay("2026-09-30", "2026-10-04")
    replayed.check_balance()
    assert replayed.suppressed >= synced.suppressed + sum(before[user] for user in users)
    rows = rows_by_user(sample)
    assert rows.total() > 300 and not rows.keys() & {*users}
    assert audit(Lake.open(sample.settings), Scope(sample.source)).agrees
