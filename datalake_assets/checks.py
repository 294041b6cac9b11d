"""Asset checks of published tables: in the UI for any table, and as scheduled jobs."""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from datalake_assets.assets.events import RunEvents
from datalake_assets.assets.keys import SOURCE_TAG, Names, reports, table
from datalake_assets.assets.running import as_dagster_failure, lake_of, op_job
from eventlake.checks.freshness import check_freshness
from eventlake.checks.published import TableChecks
from eventlake.checks.view import SOURCE_RULES, table_rules
from eventlake.lake import Lake
from eventlake.rules.types import TableSchema
from eventlake.runs.context import now
from eventlake.settings.models import Source


def table_checks(
    source: Source, tables: list[TableSchema], names: Names
) -> dg.AssetChecksDefinition:
    """All checks of a source; one op executes any selection of them."""
    keys = {names.key(table(one)): one.key for one in tables}
    specs = [
        dg.AssetCheckSpec(name, asset=key, description=rule)
        for key in keys
        for name, rule in table_rules(source).items()
    ]
    specs += [
        dg.AssetCheckSpec(name, asset=names.key(reports(source)), description=rule)
        for name, rule in SOURCE_RULES.items()
    ]

    @dg.multi_asset_check(
        name=names.of(f"check_{source.name}"),
        specs=specs,
        can_subset=True,
        op_tags={SOURCE_TAG: source.slug},
        required_resource_keys={names.of("lake")},
    )
    def checks(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        lake = lake_of(context, names)
        events = RunEvents(lake, source, names)
        wanted: dict[str, set[str]] = {}
        of_source = False
        for selected in context.selected_asset_check_keys:
            if selected.asset_key in keys:
                wanted.setdefault(keys[selected.asset_key], set()).add(selected.name)
            else:
                of_source = True
        with as_dagster_failure():
            if wanted:
                yield from map(events.check_result, TableChecks(lake, source, now()).run(wanted))
            if of_source:
                yield events.check_result(check_freshness(lake, source, now()))

    return checks


def check_tables_job(lake: Lake, source: Source, names: Names) -> dg.JobDefinition:
    """The same for all tables. Not an asset job: that would record each check three times."""

    @dg.op(
        name=names.of(f"check_{source.name}_tables"),
        description="Compares what is published with the manifests.",
        out=dg.Out(dg.Nothing),
        required_resource_keys={names.of("lake")},
    )
    def check_all(context: dg.OpExecutionContext) -> Iterator[Any]:
        lake, failed = lake_of(context, names), 0
        events = RunEvents(lake, source, names)
        with as_dagster_failure():
            for result in TableChecks(lake, source, now()).run():
                yield events.evaluation(result)
                if not result.passed:
                    failed += 1
                    context.log.warning(f"{result}")
        context.log.info(f"{failed} checks did not pass.")
        yield dg.Output(None)

    description = f"Once a day: checks all published tables of {source.slug}."
    return op_job(check_all, names.check_tables_job(source), description, lake, source)


def freshness_job(lake: Lake, names: Names) -> dg.JobDefinition:
    """All sources at once: it is cheap, and early notice is worth it."""

    @dg.op(
        name=names.of("check_freshness_of_sources"),
        description="The age of the newest event of each source, compared with its usual age.",
        out=dg.Out(dg.Nothing),
        required_resource_keys={names.of("lake")},
    )
    def check_all(context: dg.OpExecutionContext) -> Iterator[Any]:
        lake = lake_of(context, names)
        with as_dagster_failure():
            for source in lake.settings.sources:
                result = check_freshness(lake, source, now())
                yield RunEvents(lake, source, names).evaluation(result)
                if not result.passed:
                    context.log.warning(f"{result}")
        yield dg.Output(None)

    description = "Every hour: whether a source has had no new events for longer than usual."
    return op_job(check_all, names.of("check_freshness"), description, lake)
