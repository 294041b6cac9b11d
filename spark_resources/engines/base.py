"""The interface of engines, and the engine that the settings name."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
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


def engine_of(settings: Settings) -> SparkEngine:
    """Import only the engine that is used: PySpark is slow to load, and AWS is optional."""
    if settings.engine == "emr":
        from spark_resources.engines.emr.run import EmrEngine

        return EmrEngine()
    if settings.engine.startswith("spark://"):
        from spark_resources.engines.cluster.engine import ClusterEngine

        return ClusterEngine()
    from spark_resources.engines.local import local_engine

    return local_engine()
