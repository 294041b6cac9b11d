"""What a worker of a cluster is, told by itself: with Python's own library, since it may have no
more."""

import os
import platform
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple


class WorkerLook(NamedTuple):
    """Where a task ran, and what it found there."""

    host: str
    machine: str
    versions: Mapping[str, str | None]  # of the packages asked for; None: not there
    sees_file: bool  # whether a file that the driver has just written is there


def look(
    packages: Sequence[str], file: str | None, numbers: Iterable[int] = ()
) -> Iterator[WorkerLook]:
    """A task of an RDD, whatever numbers it is given."""
    yield WorkerLook(
        host=socket.gethostname(),
        machine=platform.machine(),
        versions={package: _version(package) for package in packages},
        sees_file=file is None or os.path.exists(file),
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
