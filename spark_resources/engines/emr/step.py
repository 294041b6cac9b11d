"""The step that runs a job: how our code is submitted to Spark on a cluster."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from eventlake.rules.errors import InvalidSetting, LakeError
from eventlake.runs.context import Listener
from spark_resources.engines.emr.client import (
    ENDED_CLUSTER,
    EmrClient,
    Pace,
    StepStatus,
    cluster_reason,
)
from spark_resources.engines.emr.cluster import Cluster, Json, is_supported, why_not
from spark_resources.shipping import CODE, DAEMON, ENVIRONMENT, PYTHON_PATH, Shipped

# Two tasks each. Rows are in the memory of Python, not of the JVM.
_EXECUTORS = {
    "spark.executor.cores": "2",
    "spark.executor.memory": "2g",
    "spark.executor.memoryOverhead": "4g",
}


def spark_step(
    name: str, shipped: Shipped, python: str, slots: int, arguments: Sequence[str]
) -> Json:
    """In client mode: the step's log is the driver's, and cancelling it reaches the driver."""
    settings = {
        **_EXECUTORS,
        "spark.default.parallelism": str(slots),
        "spark.pyspark.python": f"python{python}",
        "spark.python.daemon.module": DAEMON,
        "spark.executorEnv.PYTHONPATH": PYTHON_PATH,
    }
    command = ["spark-submit", "--deploy-mode", "client", "--name", name]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    command += ["--archives", f"{shipped.environment}#{ENVIRONMENT},{shipped.code}#{CODE}"]
    command += [shipped.start, shipped.code, shipped.environment, *arguments]
    return {
        "Name": name,
        "ActionOnFailure": "CONTINUE",
        "HadoopJarStep": {"Jar": "command-runner.jar", "Args": command},
    }


@dataclass(frozen=True, slots=True)
class EmrStep:
    """A step and its cluster."""

    cluster_id: str
    step_id: str
    log_uri: str | None

    @property
    def logs(self) -> str | None:
        if self.log_uri is None:
            return None
        return f"{self.log_uri}/{self.cluster_id}/steps/{self.step_id}"

    def __str__(self) -> str:
        return f"EMR cluster {self.cluster_id} (step {self.step_id})"


def unusable(problem: str) -> InvalidSetting:
    """The setting is wrong; all such errors begin alike, since users filter on it."""
    return InvalidSetting(f"Eventlake has invalid configuration for `emr_cluster_id`: {problem}")


def refuse_unusable(cluster: Cluster) -> None:
    """Raise if a cluster of the settings cannot run our steps."""
    if cluster.state in ENDED_CLUSTER:
        reason = cluster_reason(cluster).rstrip(".")
        raise unusable(
            f"EMR cluster {cluster.id} is {cluster.state}{f' ({reason})' if reason else ''}. Set "
            "the id of a running cluster; the next run uses it."
        )
    if not is_supported(cluster.release):
        raise unusable(f"EMR cluster {cluster.id} cannot be used: {why_not(cluster.release)}.")


@dataclass(frozen=True)
class EmrSteps:
    """Submits steps to clusters, and cancels them on failure."""

    emr: EmrClient
    pace: Pace
    listener: Listener

    @contextmanager
    def standing(self, cluster: Cluster, step: Json) -> Iterator[EmrStep]:
        """Add a step to a running cluster; cancel it if the block fails."""
        emr_step = EmrStep(cluster.id, self.emr.add_step(cluster.id, step), cluster.log_uri)
        with self._cancelled_on_failure(emr_step):
            yield emr_step

    @contextmanager
    def own(
        self, like: Cluster, request: Json, started: Callable[[str], None]
    ) -> Iterator[EmrStep]:
        """Start a cluster for one step, pass its id to `started`, terminate it at the end."""
        cluster_id = self.emr.start_cluster(request)
        try:
            started(cluster_id)
            emr_step = EmrStep(cluster_id, self.emr.only_step(cluster_id), like.log_uri)
            with self._cancelled_on_failure(emr_step):
                yield emr_step
        finally:
            try:
                self.emr.end_cluster(cluster_id)
                self.listener.log(f"EMR cluster {cluster_id} is being terminated")
            except LakeError as error:  # it ends by itself when its step has ended
                self.listener.warn(f"EMR cluster {cluster_id} could not be terminated: {error}")

    @contextmanager
    def _cancelled_on_failure(self, emr_step: EmrStep) -> Iterator[None]:
        try:
            yield
        except BaseException:
            with suppress(LakeError):
                self._cancel(emr_step)
            raise

    def _cancel(self, emr_step: EmrStep) -> None:
        """Interrupt the job, which then reports its error; kill it if it does not end."""
        if self.has_ended(emr_step):
            return
        self.listener.log(f"Cancelling the step on {emr_step}")
        self.emr.cancel(emr_step.cluster_id, emr_step.step_id)
        until = self.pace.now() + self.pace.cancel_seconds
        while not self.has_ended(emr_step):
            if self.pace.now() > until:
                self.emr.cancel(emr_step.cluster_id, emr_step.step_id, kill=True)
                return
            self.pace.sleep(1.0)

    def has_ended(self, emr_step: EmrStep) -> bool:
        return self.emr.step(emr_step.cluster_id, emr_step.step_id).ended

    def status(self, emr_step: EmrStep, look_at_cluster: bool) -> StepStatus:
        """The status of a step; it has also ended if its cluster has."""
        status = self.emr.step(emr_step.cluster_id, emr_step.step_id)
        if status.completed or not (status.ended or look_at_cluster):
            return status
        cluster = self.emr.describe(emr_step.cluster_id)
        if cluster.state not in ENDED_CLUSTER:
            return status
        reasons = [status.reason, f"Its cluster is {cluster.state}.", cluster_reason(cluster)]
        state = status.state if status.ended else "CANCELLED"
        return StepStatus(state, " ".join(filter(None, reasons)))
