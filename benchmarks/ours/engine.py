"""A sync by the local engine, without Dagster's bookkeeping: `python -m … LAKE_YAML`."""

import sys
from pathlib import Path

from dagster_pyspark import LazyPySparkResource
from pydantic import PrivateAttr

from benchmarks.marks import Marks
from datalake_assets.running import new_job
from lake.settings_file import load_settings
from lake.work.run_context import Silent
from spark_resources.class_archive import with_archive
from spark_resources.jobs.shelf_dataflow import ShelfDataflow
from spark_resources.local import SPARK_CONFIG, LocalEngine


class MarkedEngine(LocalEngine):
    """Tells when its session is there."""

    _marks: Marks = PrivateAttr(default_factory=Marks)

    def dataflow(self) -> ShelfDataflow:
        dataflow = super().dataflow()
        self._marks.is_ready()
        return dataflow

    @property
    def marks(self) -> Marks:
        return self._marks


def main(settings_file: Path) -> None:
    settings = load_settings(settings_file, {}, settings_file.parent)
    engine = MarkedEngine(pyspark=LazyPySparkResource(spark_config=with_archive(SPARK_CONFIG)))
    for source in settings.sources:
        job = new_job(settings, source, "")
        rows = sum(unit.report.row_count for unit in engine.run(job, Silent()))
        print(f"{source.slug}: {rows} rows")
    engine.marks.write()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
