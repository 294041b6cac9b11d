"""Runs whose process has ended: each gets a failed report, and its staging is removed.

A run that looks dead may only be suspended, and may still commit a manifest that needs its staged
files. So an empty manifest takes the next number before anything is removed: a run that planned
earlier loses the race for the commit and plans again.
"""

from datetime import datetime

import msgspec

from eventlake.catalog.base import Catalog
from eventlake.rules.clock import new_run_id
from eventlake.rules.errors import CommitConflict
from eventlake.runs.open_runs import (
    OpenRun,
    close_failed_run,
    close_upkeep,
    forget_run,
    noted_runs,
    open_runs,
    report_failure,
)
from eventlake.runs.publish import apply, catch_up
from eventlake.state.lease import read_lease
from eventlake.state.manifest import Manifest, RunKind, commit, read_manifest
from eventlake.state.report import Failure, RunFacts
from eventlake.storage import Storage

INTERRUPTED = Failure(
    "Segment.Internal",
    "The run was interrupted: its process ended without a report. What it had published stays; "
    "the next run continues from there.",
)


def dead_runs(storage: Storage, source_id: str) -> list[OpenRun]:
    """Open runs whose holder is dead."""
    return [run for run in open_runs(storage, source_id) if not run.holder.alive]


def close_dead_runs(storage: Storage, catalog: Catalog, source_id: str, now: datetime) -> list[str]:
    """Write a failed report for runs that ended without one; returns their ids.

    While another run holds the lease, the staging of dead runs stays: the empty manifest would make
    the active run lose its commit, too, and repeat its work.
    """
    noted = noted_runs(storage, source_id)
    for run_id in (run_id for run_id, run in noted.items() if run is None):
        forget_run(storage, source_id, run_id)
    dead = [run for run in noted.values() if run and not run.holder.alive]
    if not dead:
        return []
    catch_up(storage, catalog, source_id)  # committed manifests count, and need their staged files
    reported = [
        one.run.run_id
        for one in dead
        if not one.upkeep and report_failure(storage, one.run, one.after_manifest, now, INTERRUPTED)
    ]
    if read_lease(storage, source_id) is None:
        _overtake(storage, catalog, dead[0].run)
        for one in dead:
            if one.upkeep:
                close_upkeep(storage, one.run)
            else:
                close_failed_run(storage, catalog, one.run, one.after_manifest, now, INTERRUPTED)
    return reported


def _overtake(storage: Storage, catalog: Catalog, dead: RunFacts) -> None:
    """Commit an empty manifest on top of everything that the dead run committed."""
    while True:
        state = catch_up(storage, catalog, dead.source_id)
        last = read_manifest(storage, dead.source_id, state.manifest)
        nothing = Manifest(
            number=state.manifest + 1,
            source_id=dead.source_id,
            kind=RunKind.CLOSED,
            run=msgspec.structs.replace(dead, run_id=new_run_id()),
            date_partition=last.date_partition if last else "day/hour",
            naming=last.naming if last else "native",
        )
        try:
            commit(storage, nothing)
        except CommitConflict:
            continue
        apply(storage, catalog, state, nothing)
        return
