"""The master of a standalone cluster: is it running, and how an application connects to it."""

import socket
from collections.abc import Mapping
from pathlib import Path

from spark_resources.engines import java
from spark_resources.engines.cluster.errors import trouble, unusable
from spark_resources.shipping.ship import DAEMON

_CONNECT_SECONDS = 10.0
_LOG_SETTINGS = Path(java.__file__).absolute().with_name("log4j2.properties")


def masters(engine: str) -> list[tuple[str, int]]:
    """`spark://one:7077,other:7077`: of several, one leads and the others stand by."""
    addresses = [one.rpartition(":") for one in engine.removeprefix("spark://").split(",")]
    return [(host.strip("[]"), int(port)) for host, _, port in addresses]


def reach(engine: str, seconds: float = _CONNECT_SECONDS) -> str:
    """Connect to a master; the address of this machine on the way to it.

    Spark itself would try for a minute, and its error does not say what to do.
    """
    refused: list[str] = []
    for host, port in masters(engine):
        try:
            with socket.create_connection((host, port), seconds) as connection:
                return str(connection.getsockname()[0])
        except socket.gaierror as error:
            refused.append(f"{host} has no address ({error.strerror})")
        except TimeoutError:
            refused.append(f"{host}:{port} did not answer within {seconds:g} s")
        except (OSError, OverflowError) as error:
            refused.append(f"{host}:{port} refused ({getattr(error, 'strerror', None) or error})")
    problem = (
        f"there is no Spark master at {engine}: {'; '.join(refused)}. "
        "Start it (`spark-class org.apache.spark.deploy.master.Master`), open its port to this "
        "machine, or correct `engine`: the master's page, usually on port 8080, shows it as URL."
    )
    wrong = all("has no address" in reason for reason in refused)
    raise unusable(problem) if wrong else trouble(problem)


def driver_config(engine: str, own_address: str, chosen: Mapping[str, str]) -> dict[str, str]:
    """The settings of an application; executors are as Spark makes them by default."""
    logging = f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"
    return {
        "spark.master": engine,
        "spark.app.name": "datalake",
        "spark.python.daemon.module": DAEMON,
        "spark.driver.host": own_address,  # executors connect to it
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": " ".join([logging, *java.FRUGAL_JAVA]),
        "spark.executor.extraJavaOptions": " ".join(java.FRUGAL_JAVA),
        "spark.ui.killEnabled": "false",  # the UI has no login
        "spark.ui.showConsoleProgress": "false",
        **chosen,
    }
