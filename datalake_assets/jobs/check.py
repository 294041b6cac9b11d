"""The job `check`: what `datalake check` finds, in the place where scheduled syncs run."""

from collections.abc import Sequence

import dagster as dg

from datalake_assets.preflight import Finding, findings
from datalake_assets.preflight.archive import Schedules
from eventlake.catalog.sync_reports import ensure_reports_table
from eventlake.lake import Lake

NAME = "check"


def check_job(lake: Lake) -> dg.JobDefinition:
    """Fails if anything is in the way of runs."""

    @dg.op(
        name="look",
        description="Settings, roles, storage, archives, catalog and engine, each tried.",
        out=dg.Out(dg.Nothing),
    )
    def look(context: dg.OpExecutionContext) -> None:
        schedules = Schedules(lambda: context.instance)
        found: list[Finding] = []
        for finding in findings(lake, lake.settings.sources, schedules):
            found.append(finding)
            _log(context, finding)
        wrong = [finding for finding in found if finding.error]
        shown = {"findings": dg.MetadataValue.md(as_markdown(found))}
        if wrong:
            told = "\n".join(f"{finding.what}: {finding.message}" for finding in wrong)
            raise dg.Failure(told, shown, allow_retries=False)
        ensure_reports_table(lake.catalog)
        context.add_output_metadata(shown)

    @dg.job(
        name=NAME,
        description="Whether syncs and replays can work, and why there may be no data.",
        executor_def=dg.in_process_executor,
    )
    def check() -> None:
        look()

    return check


def _log(context: dg.OpExecutionContext, finding: Finding) -> None:
    line = f"{finding.sign} {finding.what}: {finding.message}"
    if finding.error:
        context.log.error(line)
    elif finding.warning:
        context.log.warning(line)
    else:
        context.log.info(line)


def as_markdown(found: Sequence[Finding]) -> str:
    """A table; a pipe in a cell would end it."""
    rows = [
        f"| {one.sign} | {one.what} | {' '.join(one.message.split()).replace('|', chr(92) + '|')} |"
        for one in found
    ]
    return "\n".join(["| | looked at | found |", "|---|---|---|", *rows])
