"""Spark's settings for a standalone cluster."""

from collections.abc import Mapping
from pathlib import Path

from spark_resources import session
from spark_resources.cluster.capacity import Shape

_LOG_SETTINGS = Path(session.__file__).absolute().with_name("log4j2.properties")


def driver_config(engine: str, own_address: str, chosen: Mapping[str, str]) -> dict[str, str]:
    """For the JVM of this process, before it is known what the workers have."""
    logging = f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"
    return {
        **session.DATAFLOW,
        **session.PACKED,
        "spark.master": engine,
        "spark.app.name": "datalake",
        "spark.python.daemon.module": "spark_resources.jobs.worker_start",
        "spark.driver.host": own_address,  # where executors find us
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": " ".join([logging, *session.FRUGAL_JAVA]),
        "spark.executor.extraJavaOptions": " ".join(session.FRUGAL_JAVA),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **chosen,
    }


def executor_config(shape: Shape) -> dict[str, str]:
    return {
        "spark.executor.cores": str(shape.cores),
        "spark.executor.memory": f"{shape.memory_mb}m",
    }
