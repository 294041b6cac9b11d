"""Asset checks of published tables: in the UI for any table, and as scheduled jobs."""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from datalake_assets.assets.events import check_evaluation, check_result
from datalake_assets.assets.keys import SOURCE_TAG, check_tables_job_name, reports_key, table_key
from datalake_assets.assets.running import as_dagster_failure, op_job
from eventlake.checks.freshness import check_freshness
from eventlake.checks.published import TableChecks
from eventlake.checks.view import SOURCE_RULES, TABLE_RULES
from eventlake.lake import Lake
from eventlake.rules.types import TableSchema
from eventlake.runs.context import now
from eventlake.settings.models import Source


def table_checks(lake: Lake, source: Source, tables: list[TableSchema]) -> dg.AssetChecksDefinition:
    """All checks of a source; one op executes any selection of them."""
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
    """The same for all tables. Not an asset job: that would record each check three times."""

    @dg.op(
        name=f"check_{source.name}_tables",
        description="Compares what is published with the manifests.",
        out=dg.Out(dg.Nothing),
    )
    def check_all(context: dg.OpExecutionContext) -> Iterator[Any]:
        failed = 0
        with as_dagster_failure():
            for result in TableChecks(lake, source, now()).run():
                yield check_evaluation(result)
                if not result.passed:
                    failed += 1
                    context.log.warning(f"{result}")
        context.log.info(f"{failed} checks did not pass.")
        yield dg.Output(None)

    description = f"Once a day: checks all published tables of {source.slug}."
    return op_job(check_all, check_tables_job_name(source), description, lake, source)


def freshness_job(lake: Lake) -> dg.JobDefinition:
    """All sources at once: it is cheap, and early notice is worth it."""

    @dg.op(
        name="check_freshness_of_sources",
        description="The age of the newest event of each source, compared with its usual age.",
        out=dg.Out(dg.Nothing),
    )
    def check_all(context: dg.OpExecutionContext) -> Iterator[Any]:
        with as_dagster_failure():
            for source in lake.settings.sources:
                result = check_freshness(lake, source, now())
                yield check_evaluation(result)
                if not result.passed:
                    context.log.warning(f"{result}")
        yield dg.Output(None)

    description = "Every hour: whether a source has had no new events for longer than usual."
    return op_job(check_all, "check_freshness", description, lake)
