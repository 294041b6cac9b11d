"""A sync, from listing the archive to its report, unit by unit."""

from collections.abc import Generator
from datetime import date

from eventlake.rules.counts import UnitReport
from eventlake.rules.errors import CommitConflict
from eventlake.runs.archive import list_archive
from eventlake.runs.context import Published, RunContext
from eventlake.runs.plan import plan_sync
from eventlake.runs.run import Run, run_to_end


def sync(context: RunContext, days: tuple[date, date] | None = None) -> UnitReport:
    """Load every raw file that is not in the lake yet; of some days' folders only, if given."""
    return run_to_end(sync_units(context, days))


def sync_units(
    context: RunContext, days: tuple[date, date] | None = None
) -> Generator[Published, None, None]:
    """A sync, unit by unit, as soon as each is in the lake."""
    run = Run(context)
    list_archive(context.storage, context.source)  # raises before anything begins
    with run.reported(), run.lease("sync"):
        while True:
            log, state = context.listener.log, run.catch_up()
            plan = plan_sync(context.storage, context.source, state, days, log)
            run.look_up_people()
            run.note_ignored(plan.ignored)
            try:
                for unit in plan.units:
                    yield run.publish(unit, final=unit is plan.units[-1], start=plan.start)
                break
            except CommitConflict as conflict:
                context.listener.warn(str(conflict))
        run.warn(plan.warnings)
