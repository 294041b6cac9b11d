"""The wish for another type: kept in the source's state until a replay fulfils it."""

from collections.abc import Callable
from datetime import date

from msgspec.structs import replace

from eventlake.lake import Lake
from eventlake.retype.target import Target
from eventlake.rules.clock import new_run_id
from eventlake.rules.errors import CommitConflict
from eventlake.rules.types import LakeType
from eventlake.runs.clean_up import with_unused
from eventlake.runs.context import now
from eventlake.runs.publish import apply, catch_up
from eventlake.state.lease import Lease, held_lease
from eventlake.state.manifest import RunKind, Wish, commit
from eventlake.state.report import RunFacts
from eventlake.state.source_state import read_state, refuse_changed_layout


def record_wish(
    lake: Lake, target: Target, type: LakeType | None, waiting: Callable[[Lease], None]
) -> None:
    """Commit the wish, or with None that it is taken back, as soon as nobody is at work."""
    source, lake = target.source, lake.for_source(target.source)
    storage, catalog = lake.storage, lake.catalog
    run_id = new_run_id()
    facts = RunFacts(
        workspace_id=lake.settings.workspace_id,
        source_id=source.id,
        database=source.database,
        run_id=run_id,
        start_time=now(),
        s3_bucket=lake.settings.bucket,
    )
    # Without the lease, a unit of work that is under way would have to be done once more.
    with held_lease(storage, source.id, run_id, f"retype of {target.name}", waiting):
        while True:
            state = catch_up(storage, catalog, source.id)
            refuse_changed_layout(source, state)
            has = state.tables[target.schema.key].types()[target.column.name]
            wish = Wish(target.schema.key, target.column.name, None if type is has else type)
            manifest = replace(
                state.next_manifest(source, RunKind.RETYPE, facts),
                wishes=(wish,),
            )
            manifest = with_unused(state, manifest, now())
            try:
                commit(storage, manifest)
            except CommitConflict:
                continue
            apply(storage, catalog, state, manifest)
            return


def days_to_replay(lake: Lake, target: Target) -> tuple[date, date]:
    """The first and the last day that a replay has to be asked for to switch the table."""
    source, schema = target.source, target.schema
    kept = read_state(lake.storage, source.id).start
    first = source.start or (date.fromisoformat(kept) if kept else date.min)
    partitions = lake.catalog.partitions(schema.database, schema.name)
    days = {source.date_partition.parse(p.values).date() for p in partitions}
    today = now().date()
    inside = [day for day in days if first <= day <= today] or [today]
    return min(inside), max(inside)
