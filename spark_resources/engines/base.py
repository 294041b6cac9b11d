"""The interface of engines, and the Spark settings that all of them share."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import dagster as dg

from eventlake.runs.context import Listener
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
