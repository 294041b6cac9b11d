"""Checks workers before a run, and ships code and packages to them."""

import os
import sys
import tempfile
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkContext

from eventlake.columnar.private_folder import private_folder
from eventlake.rules.errors import LakeError
from eventlake.runs.context import Listener
from eventlake.storage import LocalStorage, Storage
from spark_resources.engines.cluster.errors import HERE, not_shared, of_workers, trouble, unusable
from spark_resources.shipping.environment import Target, pins
from spark_resources.shipping.ship import CODE, ENVIRONMENT, ship_code, ship_environment
from spark_resources.workers.probe import Worker, workers_of


def look_at_workers(context: SparkContext, storage: Storage, engine: str) -> list[Worker]:
    """What each worker has; raises if its Python cannot be used at all."""
    with _new_file(storage) as file:
        try:
            return workers_of(context, list(pins(Target(python=HERE))), file)
        except Exception as error:
            raise of_workers(str(error), engine) or _failed(error, engine) from error


def _failed(error: Exception, engine: str) -> LakeError:
    lines = str(error).strip().splitlines()
    return trouble(f"the workers of {engine} failed at their first task: {lines[-1][:300]}.")


@contextmanager
def _new_file(storage: Storage) -> Iterator[str | None]:
    """A hidden file that workers see if they share the folder of the lake."""
    if not isinstance(storage, LocalStorage):
        yield None
        return
    stage = Path(storage.full("segment-stage"))
    stage.mkdir(parents=True, exist_ok=True)
    file = stage / f".seen-{uuid.uuid4().hex}"
    file.touch()
    try:
        yield str(file)
    finally:
        file.unlink(missing_ok=True)


def refuse_blind(workers: Collection[Worker], storage: Storage) -> None:
    """Raise if a lake in a folder is not in that folder for every worker."""
    if blind := sorted({worker.host for worker in workers if not worker.sees_file}):
        raise not_shared(storage.uri, f"worker{'s' * (len(blind) > 1)} {', '.join(blind)}")


def packages_to_ship(workers: Collection[Worker], engine: str) -> Target | None:
    """The kind of machines to ship our packages for; None if all workers have the same versions."""
    kinds = sorted({worker.machine for worker in workers})
    target = Target(machine=kinds[0], python=HERE)
    ours = pins(target)
    if all(ours.items() <= worker.versions.items() for worker in workers):
        return None
    if len(kinds) > 1:
        raise unusable(
            f"the workers of {engine} have different processors ({', '.join(kinds)}), and packages "
            "can be shipped for one kind only. Use workers of one kind, or install datalake with "
            f"its pinned packages into the {sys.implementation.name} {HERE} of each."
        )
    return target


def add_code(context: SparkContext, storage: Storage) -> None:
    """Send the code of this process, so that no worker has another version of it."""
    _add(context, storage, ship_code(storage), CODE)


def add_packages(
    context: SparkContext, storage: Storage, target: Target, listener: Listener
) -> None:
    """Send all packages that the code imports."""
    _add(context, storage, ship_environment(storage, target, listener), ENVIRONMENT)


def _add(context: SparkContext, storage: Storage, path: str, folder: str) -> None:
    """Have Spark unpack an archive of the lake for each executor, and put it on Python's path.

    Another path also means other Python workers, so none keeps the packages it had before.
    """
    context.addArchive(f"{_here(storage, path).as_uri()}#{folder}")
    own = context.environment.get("PYTHONPATH")
    context.environment["PYTHONPATH"] = f"./{folder}:{own}" if own else f"./{folder}"


def _here(storage: Storage, path: str) -> Path:
    """A file of the lake on this machine; downloaded once, since its path names its content."""
    if isinstance(storage, LocalStorage):
        return Path(storage.full(path))
    file = private_folder().joinpath(*path.split("/")[-2:])
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as draft:
            draft.write(storage.read(path) or b"")
        os.replace(draft.name, file)
    return file
