"""Sync or replay on local Spark without Dagster: `python -m benchmarks.programs.engine LAKE_YAML`,
for a replay followed by its first day and the day after its last."""

import sys
from functools import partial
from pathlib import Path

from benchmarks.programs.common import Marks
from eventlake.rules.clock import new_run_id, now, parse_range
from eventlake.runs.context import SILENT
from eventlake.settings.file import load_settings
from spark_resources.dataflow.job import LakeJob, run_job
from spark_resources.dataflow.staged import StagedDataflow
from spark_resources.engines.java import with_archive
from spark_resources.engines.session import SPARK_CONFIG, local_dataflow, session_of


def main(settings_file: Path, *days: str) -> None:
    settings = load_settings(settings_file, {}, settings_file.parent)
    marks = Marks()

    def dataflow() -> StagedDataflow:
        ready = local_dataflow(partial(session_of, with_archive(SPARK_CONFIG)), SILENT)
        marks.set_ready()
        return ready

    window = parse_range(*days) if days else None
    for source in settings.sources:
        job = LakeJob(settings.for_jobs(), source.id, new_run_id(), now(), window=window)
        rows = sum(unit.report.row_count for unit in run_job(job, dataflow, SILENT))
        print(f"{source.slug}: {rows} rows")
    marks.write()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
