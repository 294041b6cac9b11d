"""Spark's classes as Java keeps them ready: half of the time that Spark takes to start.

`make setup` makes the archive (`spark_resources.warm_up`). Without one, or with one that another
Java has made, Spark starts all the same.
"""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkContext

JAVA_OPTIONS = "spark.driver.extraJavaOptions"


def archive() -> Path:
    """Where the archive is: it belongs to the PySpark of this environment."""
    return Path(sys.prefix) / "share" / "datalake" / f"spark-{pyspark.__version__}.jsa"


def with_archive(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a session whose classes come from the archive, if there is one."""
    if not archive().exists():
        return dict(config)
    # Java would tell on the terminal why it does without an archive.
    return _with_options(config, f"-XX:SharedArchiveFile={archive()} -Xshare:auto -Xlog:disable")


def make_archive(config: Mapping[str, Any], work: Callable[[dict[str, Any]], None]) -> Path:
    """Have some work done by Spark with these settings, and keep the classes that it took."""
    target = archive()
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_suffix(f".{os.getpid()}")
    work(_with_options(config, f"-XX:ArchiveClassesAtExit={draft} -Xlog:disable"))
    _end_java()
    draft.replace(target)
    return target


def _end_java() -> None:
    """Java writes the archive when it ends."""
    context, gateway = SparkContext._active_spark_context, SparkContext._gateway
    if context is not None:
        context.stop()
    if gateway is not None:
        gateway.shutdown()
        process: Any = gateway.proc
        process.stdin.close()
        process.wait(120)


def _with_options(config: Mapping[str, Any], options: str) -> dict[str, Any]:
    return {**config, JAVA_OPTIONS: f"{config.get(JAVA_OPTIONS, '')} {options}".strip()}
