"""Our code, and the packages it imports, on their way to the executors: served by the driver."""

import os
import sys
import tempfile
from pathlib import Path

from pyspark import SparkContext

from eventlake.runs.context import Listener
from eventlake.storage import LocalStorage, Storage
from spark_resources.jobs.worker_start import CODE
from spark_resources.shipping.code import code_zip, version_of
from spark_resources.shipping.environment import Target
from spark_resources.shipping.ship import ship_environment

_FOLDER = "environment"


def add_code(context: SparkContext) -> None:
    """The code of this very process, so that no worker can have another version of it."""
    content = code_zip()
    file = _kept_here(f"{version_of(content)}/{CODE}")
    if not file.exists():
        _write(file, content)
    path = list(sys.path)
    context.addPyFile(str(file))
    sys.path[:] = path  # this process has it already
    _put_first(context, f"./{CODE}")


def add_packages(
    context: SparkContext, storage: Storage, target: Target, listener: Listener
) -> None:
    """All that the code imports, kept in the lake for the next run."""
    shipped = ship_environment(storage, target, listener)
    if isinstance(storage, LocalStorage):
        file = Path(storage.full(shipped))
    else:
        file = _kept_here("/".join(shipped.split("/")[-2:]))
        if not file.exists():
            _write(file, storage.read(shipped) or b"")
    context.addArchive(f"{file.as_uri()}#{_FOLDER}")
    _put_first(context, f"./{_FOLDER}")


def _put_first(context: SparkContext, place: str) -> None:
    """On the path of Python workers, which begin where Spark brings files to; the machine's own
    path comes after it."""
    own = context.environment.get("PYTHONPATH")
    context.environment["PYTHONPATH"] = f"{place}:{own}" if own else place


def _kept_here(name: str) -> Path:
    """A file whose name tells its content: fetched once per machine."""
    return Path(tempfile.gettempdir()) / f"datalake-{os.getuid()}" / name


def _write(file: Path, content: bytes) -> None:
    """Whole or not at all: another run may do the same."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as aside:
        aside.write(content)
    os.replace(aside.name, file)
