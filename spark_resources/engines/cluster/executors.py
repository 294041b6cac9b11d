"""The executors of an application: waits for them, but not forever."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyspark
from pyspark import SparkContext

from eventlake.rules.errors import LakeError
from eventlake.runs.context import Listener
from spark_resources.engines.cluster.errors import NoExecutors, of_workers, trouble

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
        """Without the driver, which is also in this list."""
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
