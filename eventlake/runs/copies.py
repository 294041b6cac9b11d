"""Copies, in the raw archive, of rows that a replay takes away because their raw lines are gone.

Such a copy was a duplicate, and is one no longer. Those in the range of the replay are published
together with what is taken away, so that readers find the row at any time. Those outside wait for
a replay of their own, which the run asks for.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from eventlake.load.dedup import DedupJob
from eventlake.load.stage_job import StageJob
from eventlake.rules.duplicates import Events, have_twins
from eventlake.rules.partitions import DAY_US
from eventlake.runs.dedup import Duplicates, around_days, groups_for, index_after, indexed
from eventlake.runs.unit import UnitWork, Window, tasks
from eventlake.state.id_index import day_of
from eventlake.state.manifest import IndexFile

ALL_KEPT = -1
"""A dedup window in which not even an event at the same moment is a duplicate."""


class RowsMove(Exception):
    """Rows of a unit are on other days of the replay now: these days belong to the unit."""

    def __init__(self, window: Window) -> None:
        super().__init__(f"Rows move to other days: {window} is published as one")
        self.window = window


def freed_copies(work: UnitWork, job: StageJob, duplicates: Duplicates) -> dict[str, int]:
    """The days, with counts of copies, that another replay would load; `job` is the unit's.

    Raises `RowsMove` if there are copies of lost rows in the range of the replay itself.
    """
    unit, days = work.unit, work.context.source.dedup_days
    if not len(duplicates.gone.ids) or unit.window is None:
        return {}
    range = unit.range or unit.window
    window_us = days * DAY_US

    def copies(rows: Events, window: Window, tables: frozenset[str] | None) -> Events:
        raw = _raw_events(work, replace(job, tables=tables), window)
        return Events.joined([events.where(have_twins(events, rows, window_us)) for events in raw])

    lost, parts = {*around_days(_days(duplicates.lost), days)}, [*range.by_day()]
    others = [p for p in parts if p.days[0] in lost and not unit.window.holds(p.start)]
    if moved := [p for p in others if len(copies(duplicates.lost, p, unit.tables).ids)]:
        raise RowsMove(_together(parts, [*unit.window.by_day()], moved))
    freed: dict[str, int] = {}
    for day in around_days(_days(duplicates.gone), days):
        if unit.tables is not None or not range.holds_day(day):
            found = copies(duplicates.gone, Window.of_day(day), None)
            if len(found.ids):
                files = index_after(work, duplicates, around_days([day], days))
                lake = indexed(work.context.storage, files)
                found = found.where(~have_twins(found, lake, window_us))
            freed |= {day: len(found.ids)} if len(found.ids) else {}
    return freed


def _days(events: Events) -> list[str]:
    return [day_of(day * DAY_US) for day in np.unique(events.received // DAY_US).tolist()]


def _together(days: list[Window], so_far: list[Window], more: list[Window]) -> Window:
    """All days from the first to the last, and at least twice as many as so far."""
    places = sorted(days.index(day) for day in (*so_far, *more))
    last = max(places[-1], places[0] + 2 * len(so_far) - 1)
    return Window(days[places[0]].start, days[min(last, len(days) - 1)].end)


def _raw_events(work: UnitWork, job: StageJob, window: Window) -> Iterator[Events]:
    """All events of a range that could be loaded from the archive, by groups of ids."""
    job = replace(job, window=window.in_us, ids_only=True, keep_lines=False)
    files = _raw_ids(work, job, window)
    groups = DedupJob(work.context.storage, "", "", groups_for(sum(f.ids for f in files), 0), 0, ())
    for group in range(groups.groups):
        yield indexed(work.context.storage, files, groups.buckets(group))


def _raw_ids(work: UnitWork, job: StageJob, window: Window) -> tuple[IndexFile, ...]:
    """The ids in the raw files of a range; read once in a run, as long as no files come."""
    raw = work.unit.files_of(window) if work.unit.files_of else ()
    key = (window, job.tables, raw)
    if key in work.made_ids or not raw:
        return work.made_ids.get(key, ())
    work.context.listener.log(f"{work.unit.label}: searches for copies of lost rows in {window}")
    flow = work.context.dataflow()
    try:
        seen = flow.stage(job, tasks(raw, flow.slots))
        staged = sum(rows for one in seen for rows in one.staged_rows().values())
        name, folder = f"raw-{len(work.made_ids)}", work.ids_folder
        groups = groups_for(staged, 0)
        dedup = DedupJob(job.storage, "", name, groups, ALL_KEPT, (), f"{folder}/{name}")
        parts = flow.dedup(dedup) if staged else []
    finally:
        flow.release()
    work.made_ids[key] = tuple(file for part in parts for file in part.index)
    return work.made_ids[key]
