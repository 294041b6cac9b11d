"""What an upkeep works with: a run of a source that loads nothing."""

from eventlake.lake import Lake
from eventlake.rules.clock import new_run_id
from eventlake.runs.context import Dataflow, Listener, RunContext, now
from eventlake.settings.models.models import Source
from eventlake.state.manifest import RunKind
from eventlake.state.report import RunFacts


def upkeep_context(
    lake: Lake, source: Source, listener: Listener, dagster_run_id: str = ""
) -> RunContext:
    """A run that begins now."""
    lake = lake.for_source(source)
    facts = RunFacts(
        workspace_id=lake.settings.workspace_id,
        source_id=source.id,
        database=source.database,
        run_id=new_run_id(),
        start_time=now(),
        s3_bucket=lake.settings.bucket,
        dagster_run_id=dagster_run_id,
    )
    return RunContext(
        lake.settings,
        source,
        lake.storage,
        lake.catalog,
        RunKind.UPKEEP,
        facts,
        _nothing_to_load,
        listener,
    )


def _nothing_to_load() -> Dataflow:
    raise AssertionError("an upkeep reads no raw files")
