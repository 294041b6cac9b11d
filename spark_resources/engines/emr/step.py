"""The step that runs a job: how our code is submitted to Spark on a cluster."""

from collections.abc import Mapping, Sequence

from eventlake.rules.errors import InvalidSetting
from spark_resources.engines.emr.client import ENDED_CLUSTER, cluster_reason
from spark_resources.engines.emr.cluster import Cluster, Json, is_supported, why_not
from spark_resources.engines.emr.nodes import LEAST_GB, executors_of, slots_of, worker_types
from spark_resources.shipping import (
    CODE,
    DAEMON,
    ENVIRONMENT,
    PYTHON_PATH,
    Shipped,
    Target,
    machines,
)


def spark_step(
    name: str, shipped: Shipped, properties: Mapping[str, str], arguments: Sequence[str]
) -> Json:
    """In client mode: the step's log is the driver's, and cancelling it reaches the driver."""
    command = ["spark-submit", "--deploy-mode", "client", "--name", name]
    for key, value in properties.items():
        command += ["--conf", f"{key}={value}"]
    command += ["--archives", archives(shipped)]
    command += [shipped.start, shipped.code, shipped.environment, *arguments]
    return {
        "Name": name,
        "ActionOnFailure": "CONTINUE",
        "HadoopJarStep": {"Jar": "command-runner.jar", "Args": command},
    }


def archives(shipped: Shipped) -> str:
    return f"{shipped.environment}#{ENVIRONMENT},{shipped.code}#{CODE}"


def properties_of(cluster: Cluster, python: str, conf: Mapping[str, str]) -> Mapping[str, str]:
    """Executors by the size of the nodes, unless `conf` says otherwise; our code for all."""
    executors = executors_of(cluster)
    if executors is None and "spark.executor.memory" not in conf:
        kinds = ", ".join(sorted(worker_types(cluster)))
        raise unusable(
            f"the nodes of EMR cluster {cluster.id} ({kinds}) are too small: an executor needs "
            f"{LEAST_GB:g} GB. Take larger ones, such as m5.xlarge, or set "
            "`spark.executor.memory` under `spark.conf`."
        )
    return {
        **(executors.settings() if executors else {}),
        "spark.default.parallelism": str(slots_of(cluster)),
        **conf,
        **our_properties(python),
    }


def our_properties(python: str) -> dict[str, str]:
    """How executors find our code and start with it."""
    return {
        "spark.pyspark.python": f"python{python}",
        "spark.python.daemon.module": DAEMON,
        "spark.executorEnv.PYTHONPATH": PYTHON_PATH,
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
