"""The step that carries out a job: how our code is submitted to Spark on a cluster."""

from collections.abc import Sequence

from spark_resources.emr.cluster_like import Json
from spark_resources.session import DATAFLOW
from spark_resources.shipping.ship import Shipped

# Two tasks each. The rows are in Python's memory, not in that of the JVM.
_EXECUTORS = {
    "spark.executor.cores": "2",
    "spark.executor.memory": "2g",
    "spark.executor.memoryOverhead": "4g",
}


def spark_step(
    name: str, shipped: Shipped, python: str, slots: int, arguments: Sequence[str]
) -> Json:
    """In client mode: the step's log is the driver's, and who cancels it reaches the driver."""
    settings = {
        **DATAFLOW,
        **_EXECUTORS,
        "spark.default.parallelism": str(slots),
        "spark.pyspark.python": f"python{python}",
        # Before all else on the path: the cluster has some of these packages in other versions.
        "spark.executorEnv.PYTHONPATH": "./environment",
    }
    command = ["spark-submit", "--deploy-mode", "client", "--name", name]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    command += ["--archives", f"{shipped.environment}#environment", "--py-files", shipped.code]
    command += [shipped.start, shipped.environment, *arguments]
    return {
        "Name": name,
        "ActionOnFailure": "CONTINUE",
        "HadoopJarStep": {"Jar": "command-runner.jar", "Args": command},
    }
