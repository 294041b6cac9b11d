"""Checks of what is published: from the UI for any table, and by jobs of their own."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import dagster as dg

from datalake_assets.assets.events import check_evaluation, check_result
from datalake_assets.assets.keys import SOURCE_TAG, check_tables_job_name, reports_key, table_key
from datalake_assets.assets.running import as_dagster_failure
from datalake_assets.instance.snapshot import Snapshot
from eventlake.checks.freshness import check_freshness
from eventlake.checks.published import TableChecks
from eventlake.checks.view import SOURCE_RULES, TABLE_RULES
from eventlake.lake import Lake
from eventlake.rules.types import TableSchema
from eventlake.runs.context import now
from eventlake.runs.verify import CheckResult
from eventlake.settings.models import Source

ONCE_A_DAY = "30 4 * * *"
EVERY_HOUR = "10 * * * *"
FRESHNESS_JOB = "check_freshness"


@dataclass(frozen=True)
class PublishedChecks:
    """The checks, their jobs, by id of the source, and when these run."""

    sources: tuple[Source, ...]
    by_source: dict[str, dg.AssetChecksDefinition]
    jobs: dict[str, dg.JobDefinition]
    freshness: dg.JobDefinition

    @classmethod
    def of(cls, lake: Lake, snapshot: Snapshot) -> Self:
        sources = lake.settings.sources
        known = {source.id: snapshot.of(source.id).tables_of(source) for source in sources}
        return cls(
            sources,
            {source.id: table_checks(lake, source, known[source.id]) for source in sources},
            {source.id: check_tables_job(lake, source) for source in sources},
            freshness_job(lake),
        )

    def schedules(self, running: bool) -> Iterator[dg.ScheduleDefinition]:
        """Once a day all tables of a source; every hour, whether a source has fallen silent."""
        for source in self.sources:
            if source.enabled:
                told = f"Once a day: all that is published of {source.slug}."
                yield _schedule(self.jobs[source.id], ONCE_A_DAY, running, told)
        told = "Every hour: whether a source has fallen silent."
        yield _schedule(self.freshness, EVERY_HOUR, running, told)


def table_checks(lake: Lake, source: Source, tables: list[TableSchema]) -> dg.AssetChecksDefinition:
    """All of them as checks that can be executed one by one: one op, whatever is selected."""
    keys = {table_key(table): table.key for table in tables}
    specs = [
        dg.AssetCheckSpec(name, asset=key, description=rule)
        for key in keys
        for name, rule in TABLE_RULES.items()
    ]
    specs += [
        dg.AssetCheckSpec(name, asset=reports_key(source), description=rule)
        for name, rule in SOURCE_RULES.items()
    ]

    @dg.multi_asset_check(
        name=f"check_{source.name}", specs=specs, can_subset=True, op_tags={SOURCE_TAG: source.slug}
    )
    def checks(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        wanted: dict[str, set[str]] = {}
        of_source = False
        for selected in context.selected_asset_check_keys:
            if selected.asset_key in keys:
                wanted.setdefault(keys[selected.asset_key], set()).add(selected.name)
            else:
                of_source = True
        with as_dagster_failure():
            if wanted:
                yield from map(check_result, TableChecks(lake, source, now()).run(wanted))
            if of_source:
                yield check_result(check_freshness(lake, source, now()))

    return checks


def check_tables_job(lake: Lake, source: Source) -> dg.JobDefinition:
    """The same for all tables. No job of assets: that would book each check three times."""

    @dg.op(
        name=f"check_{source.name}_tables",
        description="What is published, held against what the manifests say.",
        out=dg.Out(dg.Nothing),
    )
    def look(context: dg.OpExecutionContext) -> Iterator[Any]:
        with as_dagster_failure():
            failed: list[CheckResult] = []
            for result in TableChecks(lake, source, now()).run():
                yield check_evaluation(result)
                if not result.passed:
                    failed.append(result)
                    context.log.warning(f"{result}")
        context.log.info(f"{len(failed)} checks did not pass.")
        yield dg.Output(None)

    @dg.job(
        name=check_tables_job_name(source),
        description=f"Checks all that is published of {source.slug}: {', '.join(TABLE_RULES)}.",
        tags={SOURCE_TAG: source.slug},
        executor_def=dg.in_process_executor,
    )
    def check_tables() -> None:
        look()

    return check_tables


def freshness_job(lake: Lake) -> dg.JobDefinition:
    """All sources at once: it costs next to nothing, and is worth knowing soon."""

    @dg.op(
        name="look_for_silence",
        description="How old the newest event of each source is, and how old it may be.",
        out=dg.Out(dg.Nothing),
    )
    def look(context: dg.OpExecutionContext) -> Iterator[Any]:
        with as_dagster_failure():
            for source in lake.settings.sources:
                result = check_freshness(lake, source, now())
                yield check_evaluation(result)
                if not result.passed:
                    context.log.warning(f"{result}")
        yield dg.Output(None)

    @dg.job(
        name=FRESHNESS_JOB,
        description="Whether a source has been silent for longer than it usually is.",
        executor_def=dg.in_process_executor,
    )
    def check_for_silence() -> None:
        look()

    return check_for_silence


def _schedule(
    job: dg.JobDefinition, cron: str, running: bool, description: str
) -> dg.ScheduleDefinition:
    status = dg.DefaultScheduleStatus
    return dg.ScheduleDefinition(
        name=f"{job.name}_schedule",
        job=job,
        cron_schedule=cron,
        execution_timezone="UTC",
        default_status=status.RUNNING if running else status.STOPPED,
        description=description,
    )
