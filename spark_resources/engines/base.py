"""Where Spark runs: one interface, an engine for each place."""

import os
import re
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping

import dagster as dg

from eventlake.rules.errors import UsageError
from eventlake.runs.context import Listener, Published
from eventlake.runs.dry_run import PlannedUnit
from spark_resources.dataflow.job import LakeJob


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


NEEDED = 17
_REMEDY = (
    f"Spark needs Java {NEEDED} or newer. Install it (`apt-get install openjdk-17-jre-headless`, "
    "`brew install openjdk@17`, or run `make setup`, which does), or set JAVA_HOME to one you have."
)


def require_java() -> int:
    """The version of the Java that Spark would use; raises with the remedy if there is none."""
    home = os.environ.get("JAVA_HOME")
    program = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if program is None or not os.access(program, os.X_OK):
        where = f"JAVA_HOME is {home}, but {program} is no program" if home else "it is not on PATH"
        raise UsageError(f"Java was not found: {where}. {_REMEDY}")
    told = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    version = java_version(told.stderr + told.stdout)
    if version is None or version < NEEDED:
        raise UsageError(f"{program} is Java {version or 'of an unknown version'}. {_REMEDY}")
    return version


def java_version(told: str) -> int | None:
    """The major version in what `java -version` prints: 17.0.15 is 17, 1.8.0 is 8."""
    match = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(match[1]) if match else None
