"""Where the master is, and who we are to those that it leads to."""

import socket
from dataclasses import dataclass

from spark_resources.cluster.errors import trouble, unusable

_SECONDS = 10.0


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


def reach(engine: str, seconds: float = _SECONDS) -> Reached:
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
