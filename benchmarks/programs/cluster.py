"""Sync on a local cluster: `python -m benchmarks.programs.cluster LAKE_YAML WORKERS`."""

import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.programs.common import Marks
from datalake_assets.assets.running import new_job
from eventlake.lake import Lake
from eventlake.runs.context import Silent
from eventlake.settings.file import load_settings
from eventlake.settings.models import Settings
from spark_resources.dataflow.job import run_job
from spark_resources.engines.cluster.engine import ClusterSession
from tests.support.standalone_cluster import standalone


def main(settings_file: Path, workers: int) -> None:
    found = load_settings(settings_file, {}, settings_file.parent)
    marks = Marks()
    with tempfile.TemporaryDirectory() as folder, standalone(Path(folder), workers) as cluster:
        spark = {"python": sys.executable}
        fields = {**found.model_dump(mode="json"), "engine": cluster.url, "spark": spark}
        settings = Settings.model_validate(fields)
        storage = Lake.open(settings).storage
        with ClusterSession(settings, storage, Silent()) as session:
            session.try_storage("segment-stage")  # starts all workers and compiles their code
            marks.set_ready()
            job = new_job(settings, settings.sources[0], "")
            flow = partial(session.dataflow, job.blob_folder)
            rows = sum(unit.report.row_count for unit in run_job(job, flow, Silent()))
    print(f"{rows} rows on {workers} workers")
    marks.write()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
