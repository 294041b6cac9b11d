"""Where Spark runs: one interface, an engine for each place."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import dagster as dg

from eventlake.runs.context import Listener, Published
from eventlake.runs.dry_run import PlannedUnit
from spark_resources.jobs.lake_job import LakeJob


class SparkEngine(dg.ConfigurableResource, ABC):  # type: ignore[type-arg]
    """Carries out jobs of the lake on Spark."""

    @abstractmethod
    def run(self, job: LakeJob, listener: Listener) -> Iterator[Published]:
        """Run a job; each unit of work comes out as soon as it is published."""

    @abstractmethod
    def preview(self, job: LakeJob, listener: Listener) -> Iterator[PlannedUnit]:
        """Say what a job would do, unit by unit; the lake stays as it is."""

    @abstractmethod
    def check(self) -> None:
        """Raise an error that says what to do if this engine cannot work here."""
