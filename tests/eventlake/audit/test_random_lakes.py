"""Whatever an archive holds, a lake that was made of it passes its audit."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings

from eventlake.audit.audit import audit
from eventlake.audit.scope import Scope, Span
from eventlake.lake import Lake
from tests.eventlake.runs.test_reference import play
from tests.support.lakes.random_archives import Replay, Story, stories
from tests.support.lakes.runs import Runs, utc

DAYS = Span(utc("2026-10-01"), utc("2026-10-09"))


@settings(max_examples=30)
@given(stories())
def test_what_syncs_and_replays_make_is_what_the_archive_asks_for(story: Story) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        runs = Runs(Path(folder), **story.settings)
        replayed = False
        for step in story.steps:
            play(step, runs)
            replayed |= isinstance(step, Replay)
            for span in (Span(), DAYS):
                found = audit(Lake.open(runs.settings), Scope(runs.source, span))
                # A replay may keep an earlier copy than before, and so leave one behind, later
                # than the window, of which the lake has none until its own day is replayed.
                assert found.agrees or (replayed and not found.total.unexpected)
                assert found.total.doubled == 0
                if span.whole:
                    assert found.total.loaded == sum(runs.state().rows.values())
