"""The step that runs a job: how our code is submitted to Spark on a cluster."""

from collections.abc import Sequence

from eventlake.rules.errors import InvalidSetting
from spark_resources.engines.emr.client import ENDED_CLUSTER, cluster_reason
from spark_resources.engines.emr.cluster import Cluster, Json, is_supported, why_not
from spark_resources.shipping import (
    CODE,
    DAEMON,
    ENVIRONMENT,
    PYTHON_PATH,
    Shipped,
    Target,
    machines,
)

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


def target_of(cluster: Cluster, python: str) -> Target:
    """The kind of machine that packages are shipped for."""
    found = set(machines(cluster.instance_types))
    if len(found) > 1:
        raise unusable(
            f"EMR cluster {cluster.id} has nodes with different processors "
            f"({', '.join(sorted(cluster.instance_types))}). Use one kind of nodes: all "
            "Graviton, or none."
        )
    return Target(found.pop() if found else "x86_64", python)
