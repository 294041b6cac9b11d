"""A clock that is set back: run ids are times, but what comes later is what was committed later."""

from dataclasses import replace
from datetime import timedelta

import msgspec

from eventlake.audit.audit import audit
from eventlake.audit.scope import Scope
from eventlake.lake import Lake
from eventlake.runs.context import RunContext
from eventlake.runs.replay import replay
from eventlake.runs.sync import sync
from eventlake.runs.unit import Window
from eventlake.state.manifest import RunKind, read_manifest
from tests.support.lakes.archive import page
from tests.support.lakes.runs import Runs, utc

NOON = utc("2026-10-20T12:00")
DAY = Window(utc("2026-10-01"), utc("2026-10-02"))


def at(context: RunContext, minutes: int) -> RunContext:
    """The same run, begun when the clock said so."""
    began = NOON + timedelta(minutes=minutes)
    run_id = str(int(began.timestamp()) * 1_000_000_000)
    facts = msgspec.structs.replace(context.facts, run_id=run_id, start_time=began)
    return replace(context, facts=facts)


def test_nothing_is_lost_or_doubled_and_the_later_commit_counts(runs: Runs) -> None:
    day = runs.archive.day("2026-10-01")
    day.file("a", page("m1", "2026-10-01T07:00"), page("m2", "2026-10-01T07:00"))
    sync(at(runs.context(), minutes=0))
    day.file("b", page("m2", "2026-10-01T08:00"), page("m3", "2026-10-01T07:00"))
    sync(at(runs.context(), minutes=-60))
    replay(at(runs.context(RunKind.REPLAY, DAY), minutes=-90), DAY)
    replayed = runs.partitions("page")["2026-10-01", "07"].location
    day.file("c", page("m1", "2026-10-01T09:00"), page("m4", "2026-10-01T07:00"))
    sync(at(runs.context(), minutes=-120))

    assert runs.ids("page") == ["m1", "m2", "m3", "m4"]
    assert runs.partitions("page")["2026-10-01", "07"].location == replayed
    made = [read_manifest(runs.storage, "S1", number) for number in range(1, 5)]
    assert [one.run.start_time for one in made if one] == [
        NOON + timedelta(minutes=minutes) for minutes in (0, -60, -90, -120)
    ]
    assert {lines[0]["status"] for lines in runs.reports().values()} == {"finished"}
    assert len(runs.reports()) == 4
    assert audit(Lake.open(runs.settings), Scope(runs.source)).agrees
