"""A run from its first look at the lake to its report: the eight steps of a sync, unit by unit."""

from collections.abc import Generator, Iterator
from datetime import date

from eventlake.rules.counts import UnitReport
from eventlake.rules.errors import CommitConflict
from eventlake.runs.context import Published, RunContext
from eventlake.runs.plan import list_archive, plan_sync, replay_days
from eventlake.runs.replay import Replaying, progress, replay_of
from eventlake.runs.retype import Switches
from eventlake.runs.run import Run
from eventlake.runs.unit import Window


def sync(context: RunContext, days: tuple[date, date] | None = None) -> UnitReport:
    """Load every raw file that is not in the lake yet; of some days' folders only, if given."""
    return _to_the_end(sync_units(context, days))


def replay(
    context: RunContext,
    window: Window,
    tables: frozenset[str] | None = None,
    accept_changes: bool = False,
) -> UnitReport:
    """Load a past range again from the raw archive, replacing what the range held, day by day."""
    return _to_the_end(replay_units(context, window, tables, accept_changes))


def _to_the_end(units: Iterator[Published]) -> UnitReport:
    done = UnitReport()
    for unit in units:
        done = unit.manifest.report
    return done


def sync_units(
    context: RunContext, days: tuple[date, date] | None = None
) -> Generator[Published, None, None]:
    """A sync, unit by unit, each as soon as it is in the lake."""
    run = Run(context)
    list_archive(context.storage, context.source)  # refused before anything begins
    with run.reported(), run.lease("sync"):
        while True:
            plan = plan_sync(context.storage, context.source, run.catch_up(), days)
            run.look_up_people()
            try:
                for unit in plan.units:
                    yield run.publish(unit, final=unit is plan.units[-1], start=plan.start)
                break
            except CommitConflict as conflict:
                context.listener.warn(str(conflict))
        for warning in plan.warnings:
            context.listener.warn(warning)


def replay_units(
    context: RunContext,
    window: Window,
    tables: frozenset[str] | None = None,
    accept_changes: bool = False,
) -> Generator[Published, None, None]:
    """A replay, day by day, each as soon as it is in the lake; then the types that were wished.

    Raw files that changed since they were loaded need consent.
    """
    run = Run(context)
    days = replay_days(context.source, window)
    replaying = Replaying(run, tables, accept_changes)
    raw = replaying.look(window)  # refused before anything begins
    identity = replay_of(context.source, run.state, window, tables, run.suppression)
    with run.reported(identity):
        first_day = raw.archive.start(context.source, run.state)
        switches = Switches(context, run.state, window, tables, first_day)
        unready = switches.unready(run.state)
        replaying.progress = progress(context, run.state, raw, identity, days, unready)
        yield from replaying.days(days, switches)
        if not run.finished:
            yield from replaying.ending(switches)
