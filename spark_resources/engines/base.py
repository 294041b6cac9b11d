"""The interface of engines, the Spark settings they share, and the engine of the settings."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import dagster as dg

from eventlake.runs.context import Listener
from eventlake.settings.models import Settings
from spark_resources.dataflow.job import LakeJob


class SparkEngine(dg.ConfigurableResource, ABC):  # type: ignore[type-arg]
    """Runs jobs of the lake on Spark."""

    @abstractmethod
    def run(self, job: LakeJob, listener: Listener) -> Iterator[Any]:
        """Run a job; yields each unit as `run_job` does."""


DATAFLOW: Mapping[str, str] = {
    # A row is a batch of events: few of them at a time between the JVM and Python.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16",
    # Groups are large or few; making partitions fewer would only take slots away.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}
# The JVM only moves batches: compiling itself to perfection, and collecting garbage in many
# threads, would take the processor from those who do the work.
FRUGAL_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
# What is shuffled and kept is packed already.
PACKED: Mapping[str, str] = {
    "spark.shuffle.compress": "false",
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
}


def engine_of(settings: Settings) -> SparkEngine:
    """Only what is asked for is imported: PySpark is slow to load, and AWS not always wanted."""
    if settings.engine == "emr":
        from spark_resources.engines.emr.run import EmrEngine

        return EmrEngine()
    if settings.engine.startswith("spark://"):
        from spark_resources.engines.cluster.engine import ClusterEngine

        return ClusterEngine()
    from spark_resources.engines.local import local_engine

    return local_engine()
