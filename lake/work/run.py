"""A run from its first look at the lake to its report: the eight steps of a sync, unit by unit."""

from collections.abc import Iterator
from datetime import date

from lake.counts import UnitReport
from lake.errors import CommitConflict
from lake.work.plan import list_archive, plan_sync, replay_days
from lake.work.run_context import Published, RunContext
from lake.work.running import Run
from lake.work.switch import Switches
from lake.work.unit import Window


def sync(context: RunContext, days: tuple[date, date] | None = None) -> UnitReport:
    """Load every raw file that is not in the lake yet; of some days' folders only, if given."""
    return _to_the_end(sync_units(context, days))


def replay(context: RunContext, window: Window, tables: frozenset[str] | None = None) -> UnitReport:
    """Load a past range again from the raw archive, replacing what the range held, day by day."""
    return _to_the_end(replay_units(context, window, tables))


def _to_the_end(units: Iterator[Published]) -> UnitReport:
    done = UnitReport()
    for unit in units:
        done = unit.manifest.report
    return done


def sync_units(context: RunContext, days: tuple[date, date] | None = None) -> Iterator[Published]:
    """A sync, unit by unit, each as soon as it is in the lake."""
    run = Run(context)
    plan_sync(context.storage, context.source, run.state, days)  # refused before anything begins
    with run.reported(), run.lease("sync"):
        while True:
            plan = plan_sync(context.storage, context.source, run.catch_up(), days)
            try:
                for unit in plan.units:
                    yield run.publish(unit, final=unit is plan.units[-1], start=plan.start)
                break
            except CommitConflict as conflict:
                context.listener.warn(str(conflict))
        for warning in plan.warnings:
            context.listener.warn(warning)


def replay_units(
    context: RunContext, window: Window, tables: frozenset[str] | None = None
) -> Iterator[Published]:
    """A replay, day by day, each as soon as it is in the lake; then the types that were wished."""
    run = Run(context)
    days = replay_days(context.source, window)
    archive = list_archive(context.storage, context.source)  # refused before anything begins
    with run.reported():
        first_day = archive.start(context.source, run.state)
        switches = Switches(context, run.state, window, tables, first_day)
        for day in days:
            with run.lease(f"replay of {day}"):
                final = day is days[-1] and not switches.possible(run.state)
                published = run.publish_day(day, tables, final, switches.tables)
            yield published
        if run.finished:
            return
        for day in switches.left_out(run.catch_up()):
            with run.lease(f"replay of {day}"):
                published = run.publish_day(day, switches.tables, False, switches.tables)
            yield published
        with run.lease("switch of types"):
            switched = run.switch(switches)
        if switched is not None:
            yield switched
