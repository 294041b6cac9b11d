"""Whatever an archive holds, a table with other types is the one that the plain rules make."""

from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from eventlake.retype import find_column, record_request
from eventlake.rules.names import RESCUED_DATA, STANDARD_COLUMNS
from eventlake.rules.types import LakeType
from eventlake.runs.replay import replay_units
from eventlake.runs.unit import Window
from eventlake.state.manifest import RunKind
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.random_archives import DAYS, Story, Sync, stories
from tests.support.lakes.retyping import lake_of
from tests.support.lakes.runs import Runs, utc
from tests.support.oracles.reference import ReferenceLake, Scope
from tests.support.oracles.stories import (
    DAY,
    ReferenceStory,
    check_index,
    check_lake,
    follow_rescued_data,
    micros,
    play,
)

FIRST, END = utc(DAYS[0]), utc("2026-10-16")  # after the last day that events are received on
RequestedTypes = dict[str, dict[str, LakeType]]


def make_requests(runs: Runs, lake: ReferenceLake, draw: st.DataObject) -> RequestedTypes:
    """Other types for some of the columns that may have one, by table."""
    fixed = {column.name(runs.source.naming) for column in STANDARD_COLUMNS} | {RESCUED_DATA}
    free = [(t, c) for t, table in lake.tables.items() for c in table.columns if c not in fixed]
    requested_types: RequestedTypes = {}
    assume(free)
    chosen = st.lists(st.sampled_from(free), min_size=1, max_size=3, unique=True)
    for table, column in draw.draw(chosen):
        type = draw.draw(st.sampled_from(LakeType))
        if type is not lake.tables[table].columns[column].type:
            requested_types.setdefault(table, {})[column] = type
            name = f"shop.{runs.source.catalog_table(table)}.{column}"
            record_request(lake_of(runs), find_column(lake_of(runs), name), type, print)
    return requested_types


def stray_days(lake: ReferenceLake, tables: RequestedTypes) -> dict[str, set[date]]:
    """Days of tables that the replay of all days does not name."""
    found: dict[str, set[date]] = {}
    for name in tables:
        for row in lake.tables[name].rows:
            at = utc("1970-01-01") + timedelta(microseconds=row.received)
            if not FIRST <= at < END:
                found.setdefault(name, set()).add(at.date())
    return found


def replay_day(
    reference: ReferenceStory, start: int, tables: frozenset[str] | None, until: int = 0
) -> None:
    files = [reference.archive[place] for place in sorted(reference.archive)]
    reference.lake.load(files, Scope(start, start + micros(utc("1970-01-02")), tables, until))


def _ends_with_a_sync(story: Story) -> bool:
    return len(story.steps) > 1 and isinstance(story.steps[-1], Sync)


@settings(max_examples=40, suppress_health_check=[HealthCheck.filter_too_much])
@given(stories().filter(_ends_with_a_sync), st.data())
def test_a_retyped_table_agrees_with_the_reference(story: Story, draw: st.DataObject) -> None:
    """The last sync of the story comes between two days of the replay."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        runs = Runs(Path(folder), **story.settings)
        patch.setattr(InProcess, "slots", story.tasks)
        reference = ReferenceStory(runs)
        *before, last = story.steps
        for step in before:
            play(step, runs)
            _ = reference.sync(step) if isinstance(step, Sync) else reference.replay(step)
        requested_types = make_requests(runs, reference.lake, draw)
        check_lake(runs, reference.lake)
        tables = frozenset(requested_types) or None
        strays = stray_days(reference.lake, requested_types)
        window = Window(FIRST, END)
        units = replay_units(runs.context(RunKind.REPLAY, window), window, tables)
        when = draw.draw(st.integers(0, (END - FIRST) // DAY - 1))
        for number in range((END - FIRST) // DAY):
            next(units)
            replay_day(reference, micros(FIRST + number * DAY), tables, micros(END))
            if number == when:
                assert isinstance(last, Sync)
                play(last, runs)
                reference.sync(last)
        for day in sorted(set().union(*strays.values()) - {date.max}):
            next(units)
            replay_day(reference, micros(utc(f"{day}")), tables)
        list(units)
        left = {table for table, days in strays.items() if date.max in days}  # no replay gets there
        assert {key.split(".")[1] for key in runs.state().requested_types} == set(
            map(runs.source.catalog_table, left)
        )
        for table in requested_types.keys() - left:
            reference.lake.retype(table, requested_types[table])
        follow_rescued_data(runs, reference.lake)
        check_lake(runs, reference.lake)
        check_index(runs, reference.lake)
