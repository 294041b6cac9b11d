"""What the master knows of its workers, asked in the way in which applications speak with it."""

from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf

from spark_resources.cluster.address import Reached
from spark_resources.cluster.capacity import Worker

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
