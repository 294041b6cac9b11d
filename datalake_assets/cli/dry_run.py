"""`--dry-run` of `sync` and `replay`: jobs that only say what they would change."""

from typing import TYPE_CHECKING, Any

from datalake_assets.cli.dry_run_view import show_planned
from datalake_assets.cli.output import note, print_json, warn, working

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eventlake.lake import Lake
    from eventlake.runs.dry_run import PlannedRun
    from spark_resources.dataflow.job import LakeJob


class _Talk:
    """What a dry run says on its way."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def log(self, message: str) -> None:
        note(message)

    def warn(self, message: str) -> None:
        self.warnings.append(message)
        warn(message)


def dry_run(lake: "Lake", jobs: "Sequence[LakeJob]", as_json: bool) -> None:
    """Let each job say what it would do."""
    from datalake_assets.preflight import before_run, require
    from eventlake.runs.dry_run import planned_run
    from spark_resources.engines.factory import engine_of

    require(before_run(lake, [job.source for job in jobs]))
    engine, answers = engine_of(lake.settings), list[dict[str, Any]]()
    for job in jobs:
        talk = _Talk()
        with working(f"dry {job.kind} of {job.source.slug}"):
            run = planned_run(engine.preview(job, talk))
        answers.append(_as_dict(job, run, talk.warnings))
        if not as_json:
            show_planned(job, run)
    if as_json:
        print_json(answers)
    note("Nothing was changed (--dry-run).")


def _as_dict(job: "LakeJob", run: "PlannedRun", warnings: list[str]) -> dict[str, Any]:
    report = run.report
    window = dict(zip(("replay_from", "replay_to"), job.window or (), strict=False))
    return {
        "source": job.source.slug,
        "source_id": job.source.id,
        "dry_run": True,
        "replay": job.window is not None,
        **window,
        "rows_in": report.rows_in,
        "row_count": report.row_count,
        "duplicates": report.duplicates,
        "rejected": report.rejected,
        "suppressed": report.suppressed,
        "skipped": report.skipped,
        "raw_files": report.raw_files,
        "tables": [_table(job, run, key) for key in run.tables],
        "types": {key: {c: t.sql for c, t in types.items()} for key, types in run.switches.items()},
        "warnings": warnings,
    }


def _table(job: "LakeJob", run: "PlannedRun", key: str) -> dict[str, Any]:
    """A table as it would fare; one without new rows has only partitions that are dropped."""
    report, (now, then) = run.table(key), run.rows(key)
    return {
        "table": key,
        "is_new": report.is_new,
        "rows_now": now,
        "rows_then": then,
        "rows_in": report.rows_in,
        "row_count": report.row_count,
        "duplicates": report.duplicates,
        "rejected": report.rejected,
        "rescued_cells": report.rescued_cells,
        "new_columns": [{"name": c.name, "type": c.type} for c in report.new_columns],
        "losing_casts": {
            column: {"exact": counts.exact, "lossy": counts.lossy, "failed": counts.failed}
            for (table, column), counts in run.losing_casts.items()
            if table == key
        },
        "partitions": [
            {
                **dict(zip(job.source.date_partition.keys, partition.values, strict=True)),
                "rows_now": partition.rows_now,
                "rows_then": partition.rows_then,
            }
            for partition in run.partitions
            if partition.table == key
        ],
    }
