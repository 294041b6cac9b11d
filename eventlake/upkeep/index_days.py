"""Days of the id index that no event near the present is compared with leave state and disk.

Should events of such a day come after all, or a replay, its index is made anew from the tables.
"""

from datetime import date, datetime, timedelta

from msgspec.structs import replace

from eventlake.rules.errors import CommitConflict
from eventlake.runs.clean_up import with_unused
from eventlake.runs.context import now
from eventlake.runs.run import Run
from eventlake.settings.models.models import Source
from eventlake.state.manifest import RunKind
from eventlake.state.source_state import SourceState


def kept_from(source: Source, at: datetime) -> date:
    """The first day whose index stays: all that today's events are compared with, and more."""
    return (at - timedelta(days=max(source.retention.index_days, source.dedup_days + 1))).date()


def spare_days(state: SourceState, source: Source, at: datetime) -> list[str]:
    first = kept_from(source, at).isoformat()
    return sorted(day for day in state.index if day < first)


def drop_index_days(run: Run, at: datetime) -> list[str]:
    """Commit that they are gone; their files go after the grace time, like all that is replaced."""
    source = run.context.source
    if not spare_days(run.state, source, at):
        return []
    with run.lease("upkeep of the id index"):
        while True:
            state = run.catch_up()
            days = spare_days(state, source, at)
            manifest = replace(
                state.next_manifest(source, RunKind.UPKEEP, run.context.facts),
                index_days_replaced=tuple(days),
                index_from=kept_from(source, at).isoformat(),
            )
            try:
                run.commit(with_unused(state, manifest, now()))
            except CommitConflict as conflict:
                run.context.listener.log(str(conflict))
                continue
            return days
