"""A task that reports the environment of a worker. Standard library only: it may lack packages."""

import os
import platform
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark import SparkContext

    from eventlake.runs.context import Listener


class Worker(NamedTuple):
    """The environment of a worker."""

    host: str
    machine: str
    versions: Mapping[str, str | None]  # of the packages asked for; None: not installed
    sees_file: bool  # whether it sees a file that the driver has just written
    kernels: tuple[int, int] | None  # from the cache, compiled; None: its daemon has none


def report(
    packages: Sequence[str], file: str | None, numbers: Iterable[int] = ()
) -> Iterator[Worker]:
    """A task of an RDD, whatever numbers it is given."""
    compiled = sys.modules.get("eventlake.columnar.compiled")
    yield Worker(
        host=socket.gethostname(),
        machine=platform.machine(),
        versions={package: _version(package) for package in packages},
        sees_file=file is None or os.path.exists(file),
        kernels=None if compiled is None else tuple(compiled.kernels()),
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def workers_of(
    context: "SparkContext", packages: Sequence[str] = (), file: str | None = None
) -> list[Worker]:
    """A report from each slot; starts the workers if they have not been started."""
    slots = context.defaultParallelism
    context.setJobDescription("start the workers")
    rdd = context.parallelize(range(slots), slots)
    return rdd.mapPartitions(lambda numbers: report(packages, file, numbers)).collect()


def log_kernels(workers: Sequence[Worker], listener: "Listener") -> None:
    """Log whether the workers have compiled kernels, and how many they had to compile."""
    ready = [worker.kernels for worker in workers if worker.kernels]
    cached, compiled = (max((k[n] for k in ready), default=0) for n in (0, 1))
    if len(ready) < len(workers):
        listener.warn(
            f"{len(workers) - len(ready)} of {len(workers)} workers have no compiled kernels. "
            "The log of the executors says why"
        )
    listener.log(f"Kernels of {len(ready)} workers: {cached} from the cache, {compiled} compiled")
