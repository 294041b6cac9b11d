"""The master of a standalone cluster: reach it, list its workers, size executors for them."""

import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf

from spark_resources.engines import java
from spark_resources.engines.cluster.errors import trouble, unusable

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


_LOG_SETTINGS = Path(java.__file__).absolute().with_name("log4j2.properties")


def driver_config(engine: str, own_address: str, chosen: Mapping[str, str]) -> dict[str, str]:
    """For the JVM of this process, before it is known what the workers have."""
    logging = f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"
    return {
        **java.DATAFLOW,
        **java.PACKED,
        "spark.master": engine,
        "spark.app.name": "datalake",
        "spark.python.daemon.module": "spark_resources.workers.start",
        "spark.driver.host": own_address,  # where executors find us
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": " ".join([logging, *java.FRUGAL_JAVA]),
        "spark.executor.extraJavaOptions": " ".join(java.FRUGAL_JAVA),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **chosen,
    }


def executor_config(shape: Shape) -> dict[str, str]:
    return {
        "spark.executor.cores": str(shape.cores),
        "spark.executor.memory": f"{shape.memory_mb}m",
    }


_CONNECT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Master:
    """One of the masters that `engine` names."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Reached:
    """A master that answers, and our own address on the way to it."""

    master: Master
    own_address: str


def masters(engine: str) -> list[Master]:
    """`spark://one:7077,other:7077`: of several, one leads and the others stand by."""
    places = [place.rpartition(":") for place in engine.removeprefix("spark://").split(",")]
    return [Master(host.strip("[]"), int(port)) for host, _, port in places]


def reach(engine: str, seconds: float = _CONNECT_SECONDS) -> Reached:
    """Connect to a master. Spark itself would try for a minute, and say nothing of use."""
    refused: list[str] = []
    for master in masters(engine):
        try:
            with socket.create_connection((master.host, master.port), seconds) as connection:
                return Reached(master, connection.getsockname()[0])
        except socket.gaierror as error:
            refused.append(f"{master.host} has no address ({error.strerror})")
        except TimeoutError:
            refused.append(f"{master} did not answer within {seconds:g} s")
        except (OSError, OverflowError) as error:
            refused.append(f"{master} refused ({getattr(error, 'strerror', None) or error})")
    told = f"there is no Spark master at {engine}: {'; '.join(refused)}."
    remedy = (
        "Start it (`spark-class org.apache.spark.deploy.master.Master`), open its port to this "
        "machine, or correct `engine`: the master's page, usually on port 8080, shows it as URL."
    )
    if all("has no address" in reason for reason in refused):
        raise unusable(f"{told} {remedy}")
    raise trouble(f"{told} {remedy}")


def own_address_to(host: str, otherwise: str) -> str:
    """Our address on the way to a host; nothing is sent there."""
    try:
        kind, _, _, _, target = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(kind, socket.SOCK_DGRAM) as way:
            way.connect(target)
            return str(way.getsockname()[0])
    except OSError:  # its name is known to its own network only
        return otherwise


_SECONDS = "20s"


def ask_workers(jvm: Any, reached: Reached) -> list[Worker] | None:
    """Its workers, also such as died lately; None if it speaks another Spark's language.

    There is no public way to ask but the master's page, whose port is not known here.
    """
    conf = SparkConf(loadDefaults=True, _jvm=jvm)
    conf.set("spark.rpc.askTimeout", _SECONDS).set("spark.rpc.lookupTimeout", _SECONDS)
    spark, scala = jvm.org.apache.spark, jvm.scala
    rpc = None
    try:
        manager = spark.SecurityManager
        security = manager(
            conf._jconf,
            getattr(manager, "$lessinit$greater$default$2")(),
            getattr(manager, "$lessinit$greater$default$3")(),
        )
        name = "datalake"
        rpc = spark.rpc.RpcEnv.create(name, reached.own_address, 0, conf._jconf, security, True)
        address = spark.rpc.RpcAddress(reached.master.host, reached.master.port)
        endpoint = rpc.setupEndpointRef(address, "Master")
        messages = spark.deploy
        question = getattr(getattr(messages, "DeployMessages$RequestMasterState$"), "MODULE$")
        any_answer = getattr(getattr(scala.reflect, "ClassTag$"), "MODULE$").Any()
        answer = endpoint.askSync(question, any_answer)
        return [Worker(w.host(), w.cores(), w.memory()) for w in answer.workers()]
    except (Py4JError, TypeError):
        return None
    finally:
        if rpc is not None:
            rpc.shutdown()
