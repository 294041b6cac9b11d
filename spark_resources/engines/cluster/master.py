"""What the master knows of its workers, asked in the way in which applications speak with it."""

import socket
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf

from spark_resources.engines.cluster.capacity import Worker
from spark_resources.engines.cluster.errors import trouble, unusable

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
