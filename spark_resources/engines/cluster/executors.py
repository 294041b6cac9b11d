"""The executors of an application: waits for them, checks their workers, ships code and packages.

Errors of the cluster name their remedy; Spark itself reports Java stack traces.
"""

import os
import re
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark
from pyspark import SparkContext

from eventlake.columnar.private_folder import private_folder
from eventlake.rules.errors import InvalidSetting, LakeError, ServiceTrouble
from eventlake.runs.context import Listener
from eventlake.storage import LocalStorage, Storage
from spark_resources.shipping import CODE, ENVIRONMENT, Target, pins, ship_code, ship_environment
from spark_resources.workers.probe import Worker, workers_of

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"(?: \(in directory "[^"]*"\))?: ([^\n]*)')
_OTHER_PYTHON = re.compile(r"PYTHON_VERSION_MISMATCH\][^\n]*?version: ?(\d+\.\d+)")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


def unusable(problem: str) -> InvalidSetting:
    """The cluster of the settings cannot run jobs; all such errors begin alike."""
    return InvalidSetting(f"Eventlake has invalid configuration for `engine`: {problem}")


def trouble(problem: str) -> ServiceTrouble:
    """The cluster failed, although the settings are right."""
    return ServiceTrouble(
        f"Spark did not answer as it should: {problem} What was published stays; the next run "
        "continues from there."
    )


class NoExecutors(ServiceTrouble):
    """The cluster started no executor within the time-out."""


def of_workers(text: str, master: str) -> LakeError | None:
    """The error of workers that is known to cause this error text of Spark, if any."""
    if found := _NO_PROGRAM.search(text):
        return unusable(
            f"the workers of {master} cannot run {found[1]!r} ({found[2].strip()}). Install Python "
            f"{HERE} on each of them, or set `python` under `spark` to where it is."
        )
    if found := _OTHER_PYTHON.search(text):
        return unusable(
            f"the workers of {master} run Python {found[1]}, this is Python {HERE}. Set `python` "
            f"under `spark` to a Python {HERE} of the workers, or run Dagster with {found[1]}."
        )
    if found := _NO_MODULE.search(text):
        return unusable(
            f"a worker of {master} has no Python package {found[1]!r}. A worker that joined later "
            "has other packages than those that were checked: install the same on all, or none."
        )
    return None


def not_shared(folder: str, hosts: str) -> InvalidSetting:
    return InvalidSetting(
        f"Eventlake has invalid configuration for `storage`: {hosts} of the cluster cannot see "
        f"what this machine writes to {folder}. Mount the same folder there, under the same path "
        "and for the same user, or set `storage` to s3://bucket[/prefix]."
    )


_EVERY = 0.1
_SETTLED = 1.0  # seconds without another executor, after which the run starts with those it has
_LOG_EVERY = 60.0


@dataclass(frozen=True)
class Executors:
    """The executors of one application."""

    context: SparkContext
    engine: str
    wait_seconds: float
    listener: Listener

    @property
    def count(self) -> int:
        """The number of executors. The list of Spark includes the driver."""
        status = self.context._jsc.sc().getExecutorMemoryStatus()
        return int(status.size()) - 1

    @property
    def lost(self) -> bool:
        """Whether the master has ended the application."""
        return bool(self.context._jsc.sc().isStopped())

    def __str__(self) -> str:
        slots, count = self.context.defaultParallelism, self.count
        return f"{count} executor{'s' * (count != 1)} with {slots} core{'s' * (slots != 1)} in all"

    def wait(self) -> "Executors":
        """Wait for the first executor, and for those that start with it."""
        began = grown = logged = time.monotonic()
        found = 0
        while not self.lost:
            now, count = time.monotonic(), self.count
            if count > found:
                found, grown = count, now
            if found and now - grown > _SETTLED:
                return self
            if not found and now - began > self.wait_seconds:
                raise self._none()
            if not found and now - logged > _LOG_EVERY:
                logged = now
                self.listener.log(f"Waiting for executors of {self.engine}: all cores are taken")
            time.sleep(_EVERY)
        raise self._removed()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """A block in which jobs fail if all executors are gone for too long."""
        done = threading.Event()
        gone: list[LakeError] = []
        watch = threading.Thread(target=self._watch, args=(done, gone), daemon=True)
        watch.start()
        try:
            yield
        except Exception as error:
            known = of_workers(str(error), self.engine)
            if known is None and (gone or self.lost):
                known = gone[0] if gone else self._removed()
            if known is None:
                raise
            raise known from error
        finally:
            done.set()
            watch.join()

    def _watch(self, done: threading.Event, gone: list[LakeError]) -> None:
        alone_since: float | None = None
        while not done.wait(1.0) and not self.lost:
            if self.count:
                alone_since = None
                continue
            alone_since = alone_since or time.monotonic()
            if time.monotonic() - alone_since > self.wait_seconds:
                gone.append(self._none())
                self.context.cancelAllJobs()
                return

    def _none(self) -> LakeError:
        message = trouble(
            f"{self.engine} gave no executor for {self.wait_seconds / 60:g} minutes. The page of "
            "the master shows whether workers are running, which applications have their cores, "
            "and how much memory is free: an executor needs 1 GB unless `spark.executor.memory` "
            "says otherwise. A limit such as `spark.cores.max` below `spark: conf:` lets runs share"
            " cores, `wait_minutes` waits longer. If executors start and end at once, they cannot "
            "connect to this machine: see their logs, in the folder `work` of the workers, and set "
            "`spark.driver.host`."
        )
        return NoExecutors(str(message))

    def _removed(self) -> LakeError:
        return trouble(
            f"the master at {self.engine} has ended the application. Either executors failed ten "
            "times in a row: see their logs, in the folder `work` of the workers; if they cannot "
            "connect to this machine, set `spark.driver.host`. Or the master does not run Spark "
            f"{pyspark.__version__}, like this machine: install the same version on both."
        )


def look_at_workers(context: SparkContext, storage: Storage, engine: str) -> list[Worker]:
    """The facts of each worker; raises if its Python cannot be used at all."""
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
