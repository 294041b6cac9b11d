"""Prepares fast starts once: `python -m spark_resources.warm_up`.

A small sync into a temporary lake compiles the kernels and archives the classes of Spark.
"""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eventlake.rules import clock
from eventlake.runs.context import SILENT
from eventlake.sample.archive import write_archive
from eventlake.sample.spec import WEB_SHOP, SampleSpec
from eventlake.settings.models import Settings
from spark_resources.dataflow.job import LakeJob, run_job
from spark_resources.engines.java import make_archive
from spark_resources.engines.session import SPARK_CONFIG, local_dataflow, session_of

_SAMPLE = SampleSpec(days=1, events_per_day=600)


def small_sync(config: dict[str, Any]) -> None:
    """A sync of a few hundred events, with a session of these settings."""
    with TemporaryDirectory() as folder:
        write_archive(Path(folder), _SAMPLE, sources=(WEB_SHOP,))
        settings = Settings.model_validate(
            {
                "workspace_id": "warm-up",
                "storage": folder,
                "sources": [{"id": WEB_SHOP.id, "slug": WEB_SHOP.slug}],
            }
        )
        job = LakeJob(
            settings_json=settings.model_dump(mode="json"),
            source_id=WEB_SHOP.id,
            run_id="1",
            start_time=clock.now(),
        )
        for _ in run_job(job, partial(local_dataflow, partial(session_of, config), SILENT), SILENT):
            pass


def main() -> None:
    print(make_archive(SPARK_CONFIG, small_sync))


if __name__ == "__main__":
    main()
