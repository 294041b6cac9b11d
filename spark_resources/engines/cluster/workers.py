"""Workers looked at before they get work: their Python, their packages, the lake's folder."""

import os
import sys
import tempfile
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from pyspark import SparkContext

from eventlake.rules.errors import LakeError
from eventlake.runs.context import Listener
from eventlake.storage import LocalStorage, Storage
from spark_resources.engines.cluster.errors import HERE, not_shared, of_workers, trouble, unusable
from spark_resources.shipping.environment import Target, pins
from spark_resources.shipping.ship import code_zip, ship_environment, version_of
from spark_resources.workers.probe import WorkerLook, look
from spark_resources.workers.start import CODE, LOOKING


def look_at_workers(context: SparkContext, storage: Storage, engine: str) -> list[WorkerLook]:
    """What each of them tells; raises if their Python cannot be used at all."""
    packages = list(pins(Target(python=HERE)))
    slots = context.defaultParallelism
    with _token(storage) as file:
        context.environment[LOOKING] = "1"
        try:
            task = partial(look, packages, file)
            return context.parallelize(range(slots), slots).mapPartitions(task).collect()
        except Exception as error:
            raise of_workers(str(error), engine) or _failed(error, engine) from error
        finally:
            del context.environment[LOOKING]


def _failed(error: Exception, engine: str) -> LakeError:
    told = str(error).strip().splitlines()
    return trouble(f"the workers of {engine} failed at their first task: {told[-1][:300]}.")


@contextmanager
def _token(storage: Storage) -> Iterator[str | None]:
    """A hidden file by which others can tell that they see the same folder."""
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


def refuse_blind(looks: Collection[WorkerLook], storage: Storage) -> None:
    """A lake in a folder must be in that folder for every worker."""
    if blind := sorted({look.host for look in looks if not look.sees_file}):
        raise not_shared(storage.uri, f"worker{'s' * (len(blind) > 1)} {', '.join(blind)}")


def packages_to_ship(looks: Collection[WorkerLook], engine: str) -> Target | None:
    """For which machines our packages have to be brought; None if all have the very same."""
    kinds = sorted({look.machine for look in looks})
    target = Target(machine=kinds[0], python=HERE)
    ours = pins(target)
    if all(ours.items() <= look.versions.items() for look in looks):
        return None
    if len(kinds) > 1:
        raise unusable(
            f"the workers of {engine} have different processors ({', '.join(kinds)}), and packages "
            "can be brought to one kind only. Use workers of one kind, or install datalake with "
            f"its pinned packages into the {sys.implementation.name} {HERE} of each."
        )
    return target


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
