"""What the workers have, what an executor asks for, and whether these go together."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spark_resources.engines import base
from spark_resources.engines.cluster.errors import unusable

_MOST_CORES = 2
_MB_PER_CORE = 1024  # for the JVM; rows are in Python's memory, beside it
_LEAST_MB = 512  # with less the JVM does not start
_UNITS = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024 * 1024}


@dataclass(frozen=True, slots=True)
class Worker:
    """What a worker has told its master, whoever uses it now."""

    host: str
    cores: int
    memory_mb: int

    def __str__(self) -> str:
        return f"{self.host} ({cores(self.cores)}, {self.memory_mb:,} MB)"


@dataclass(frozen=True, slots=True)
class Shape:
    """What each executor asks of the worker it runs on."""

    cores: int
    memory_mb: int

    def fits(self, worker: Worker) -> int:
        """How many executors the worker has room for, if nobody else is there."""
        return min(worker.cores // self.cores, worker.memory_mb // self.memory_mb)

    def __str__(self) -> str:
        return f"{cores(self.cores)} and {self.memory_mb:,} MB"


def cores(count: int) -> str:
    return "1 core" if count == 1 else f"{count} cores"


def shape_for(workers: Sequence[Worker], conf: Mapping[str, str]) -> Shape:
    """As the settings say; else small executors, of which each worker takes as many as it can."""
    least = min((worker.cores for worker in workers), default=_MOST_CORES)
    count = int(conf.get("spark.executor.cores", max(1, min(least, _MOST_CORES))))
    if told := conf.get("spark.executor.memory"):
        return Shape(count, megabytes(told))
    shares = [w.memory_mb // max(1, w.cores // count) for w in workers]
    return Shape(count, max(_LEAST_MB, min([count * _MB_PER_CORE, *shares])))


def megabytes(size: str) -> int:
    """A size as Spark's settings have it: 2g, 512m."""
    found = re.fullmatch(r"(\d+)([kmgt])b?", size.lower())
    return max(1, int(int(found[1]) * _UNITS[found[2]])) if found else _LEAST_MB


def expected(workers: Sequence[Worker], shape: Shape, conf: Mapping[str, str]) -> int:
    """How many executors there will be if the whole cluster is ours."""
    room = sum(shape.fits(worker) for worker in workers)
    most = conf.get("spark.cores.max")
    return min(room, max(1, int(most) // shape.cores)) if most else room


def refuse_too_small(workers: Sequence[Worker], shape: Shape, engine: str) -> None:
    """Raise where waiting is of no use: Spark would do it for ever."""
    if not workers:
        raise unusable(
            f"no worker has registered with the master at {engine}. Start at least one "
            f"(`spark-class org.apache.spark.deploy.worker.Worker {engine}`)."
        )
    if any(shape.fits(worker) for worker in workers):
        return
    largest = sorted(workers, key=lambda w: (-w.memory_mb, -w.cores))[:3]
    raise unusable(
        f"no worker of {engine} has room for an executor, which asks for {shape}; the largest "
        f"{'is' if len(largest) == 1 else 'are'} {', '.join(map(str, largest))}. Set "
        "`spark.executor.cores` and `spark.executor.memory` below `spark: conf:` to less, or start "
        "workers with more (`--cores`, `--memory`)."
    )


_LOG_SETTINGS = Path(base.__file__).absolute().with_name("log4j2.properties")


def driver_config(engine: str, own_address: str, chosen: Mapping[str, str]) -> dict[str, str]:
    """For the JVM of this process, before it is known what the workers have."""
    logging = f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"
    return {
        **base.DATAFLOW,
        **base.PACKED,
        "spark.master": engine,
        "spark.app.name": "datalake",
        "spark.python.daemon.module": "spark_resources.workers.start",
        "spark.driver.host": own_address,  # where executors find us
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": " ".join([logging, *base.FRUGAL_JAVA]),
        "spark.executor.extraJavaOptions": " ".join(base.FRUGAL_JAVA),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **chosen,
    }


def executor_config(shape: Shape) -> dict[str, str]:
    return {
        "spark.executor.cores": str(shape.cores),
        "spark.executor.memory": f"{shape.memory_mb}m",
    }
