"""Whatever an archive holds, an audit of its lake finds exactly what the plain rules find."""

import os
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings

from eventlake.audit.audit import audit
from eventlake.audit.scope import EVERYTHING, Scope, micros
from eventlake.lake import Lake
from eventlake.runs.unit import Window
from tests.support.lakes.random_archives import Replay, Story, Sync, stories
from tests.support.lakes.runs import Runs, utc
from tests.support.oracles.reference import ReferenceLake
from tests.support.oracles.stories import Told, play

DAYS = Window(utc("2026-10-01"), utc("2026-10-09"))


def times_by_id(lake: ReferenceLake) -> dict[str, list[int]]:
    """When the rows of each message id were received, in order."""
    found = defaultdict(list)
    for table in lake.tables.values():
        for row in table.rows:
            found[row.id].append(row.received)
    return {id: sorted(times) for id, times in found.items()}


def missing(told: Told, range: Window) -> int:
    """Events of the range that no row of their id is near to; of several near each other, one."""
    archive = ReferenceLake(told.runs.source.model_copy(update={"dedup_days": 0}))
    archive.load(list(told.archive.values()))
    loaded = times_by_id(told.lake)
    start, end = micros(range)
    window = Scope(told.runs.source).dedup_micros
    count = 0
    for id, times in times_by_id(archive).items():
        known = loaded.get(id, [])
        for time in times:
            if start <= time < end and all(abs(time - other) > window for other in known):
                known = [*known, time]
                count += 1
    return count


def page(received: str) -> dict[str, str]:
    return {"type": "page", "messageId": "m1", "receivedAt": received}


LEFT_BEHIND = Story(
    {"start": "2026-10-01"},
    [
        # The last one is a duplicate of the first, until the replay keeps an earlier one.
        Sync({("2026-10-09", "a"): [page("2026-10-08T07:00:00Z"), page("2026-10-15T07:00:00Z")]}),
        Sync({("2026-10-09", "b"): [page("2026-10-08T06:59:59.999999Z")]}),
        Replay("2026-10-01", "2026-10-09", frozenset()),
    ],
)


@settings(max_examples=30)
@given(stories())
@example(LEFT_BEHIND)
def test_what_syncs_and_replays_make_is_what_the_archive_asks_for(story: Story) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        runs = Runs(Path(folder), **story.settings)
        told = Told(runs)
        for number, step in enumerate(story.steps):
            play(step, runs)
            if isinstance(step, Replay):
                told.replay(step)
            else:
                told.sync(step)
            replayed = any(isinstance(done, Replay) for done in story.steps[: number + 1])
            for range in (EVERYTHING, DAYS):
                found = audit(Lake.open(runs.settings), Scope(runs.source, range))
                # A replay may keep an earlier copy than before, and so leave one behind, later
                # than the window, of which the lake has none until its own day is replayed.
                assert found.total.missing == missing(told, range)
                assert replayed or found.total.missing == 0
                assert found.agrees == (found.total.missing == 0)
                assert not any(partition.problems for partition in found.partitions)
                assert (found.total.unexpected, found.total.doubled) == (0, 0)
                if range is EVERYTHING:
                    assert found.total.loaded == sum(runs.state().rows.values())


def test_the_audit_finds_the_copy_that_a_replay_leaves_behind(tmp_path: Path) -> None:
    runs = Runs(tmp_path, **LEFT_BEHIND.settings)
    for step in LEFT_BEHIND.steps:
        play(step, runs)
    found = audit(Lake.open(runs.settings), Scope(runs.source))
    assert [partition.missing for partition in found.partitions] == [1]
