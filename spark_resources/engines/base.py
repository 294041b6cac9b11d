"""The interface of engines, and the engine that the settings name."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import dagster as dg
import msgspec

from eventlake.runs.context import Listener
from eventlake.settings.models import Settings
from spark_resources.dataflow.job import LakeJob


class SparkEngine(dg.ConfigurableResource, ABC):  # type: ignore[type-arg]
    """Runs jobs of the lake on Spark."""

    def configured(self, job: LakeJob) -> LakeJob:
        """The job with the settings that the fields of the engine replace."""
        given = {name: value for name, value in self.settings().items() if value is not None}
        return msgspec.structs.replace(job, settings_json=replaced(job.settings_json, given))

    def settings(self) -> dict[str, Any]:
        """The settings of lake.yaml that the fields stand for; None: as in lake.yaml."""
        return {}

    @abstractmethod
    def run(self, job: LakeJob, listener: Listener) -> Iterator[Any]:
        """Run a job; yields each unit as `run_job` does."""


def replaced(settings: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with other values; sources that inherit a value inherit the new one."""
    sources = [
        source | {k: v for k, v in given.items() if k in source and source[k] == settings[k]}
        for source in settings["sources"]
    ]
    return {**settings, **given, "sources": sources}


def engine_of(settings: Settings) -> SparkEngine:
    """The engine of the settings as a resource whose fields show them.

    Only the engine that is used is imported: PySpark is slow to load, and AWS is optional.
    """
    if settings.engine == "emr":
        from spark_resources.engines.emr.engine import EmrEngine

        return EmrEngine(
            cluster_id=settings.emr_cluster_id,
            region=settings.region,
            role_arn=settings.iam_role_arn,
            conf=dict(settings.spark.conf),
        )
    if settings.engine == "emr-serverless":
        from spark_resources.engines.emr.serverless import EmrServerlessEngine

        return EmrServerlessEngine(
            application_id=settings.emr_serverless_application_id,
            execution_role_arn=settings.execution_role_arn,
            region=settings.region,
            role_arn=settings.iam_role_arn,
            conf=dict(settings.spark.conf),
        )
    if settings.engine.startswith("spark://"):
        from spark_resources.engines.cluster.engine import ClusterEngine

        spark = settings.spark
        return ClusterEngine(
            master=settings.engine,
            worker_python=spark.python,
            wait_minutes=spark.wait_minutes,
            conf=dict(spark.conf),
        )
    from spark_resources.engines.local import local_engine

    return local_engine()
