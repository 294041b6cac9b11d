"""Whatever an archive holds, the lake made of it is the one that the plain rules make."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlake.load import blobs, table_rows
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.random_archives import Story, Sync, stories
from tests.support.lakes.rare import all_are_rare
from tests.support.lakes.runs import Runs
from tests.support.oracles.stories import (
    Told,
    check_index,
    check_lake,
    check_records,
    check_report,
    play,
)


@settings(max_examples=30)
@given(
    stories(suppression=True),
    st.sampled_from([1, 2, 3, table_rows.CHUNK]),
    st.sampled_from([1, 5_000, blobs.LARGEST]),
    st.booleans(),
)
def test_the_lake_is_what_the_plain_rules_make_of_the_archive(
    story: Story, chunk: int, share: int, rare: bool
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)  # this lake need not survive a power cut
        runs = Runs(Path(folder), **story.settings)
        patch.setattr(InProcess, "slots", story.tasks)
        patch.setattr(table_rows, "CHUNK", chunk)
        patch.setattr(blobs, "LARGEST", share)
        if rare:
            all_are_rare(patch)
        told = Told(runs)
        for step in story.steps:
            report = play(step, runs)
            accounts = told.sync(step) if isinstance(step, Sync) else told.replay(step)
            check_report(report, accounts, told)
            check_records(runs, report)
            check_lake(runs, told.lake)
            check_index(runs, told.lake)
