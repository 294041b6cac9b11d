"""The executors that the master has given us: waited for, but never for ever."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark import SparkContext
from pyspark.sql import SparkSession

from eventlake.load.blobs import Shares
from eventlake.load.dedup import Deduped, DedupJob
from eventlake.load.record_log import LogJob, NotLoaded
from eventlake.load.seen import Seen
from eventlake.load.stage_job import RawFile, StageJob
from eventlake.load.write import LoadedFile, LoadJob
from eventlake.rules.errors import LakeError
from eventlake.runs.context import Listener
from spark_resources.dataflow.cluster import SparkDataflow
from spark_resources.engines.cluster.errors import NoExecutors, of_workers, trouble

_EVERY = 0.2
_SETTLED = 3.0  # seconds without one more executor, after which those that are there begin
_TELL_EVERY = 60.0


@dataclass(frozen=True)
class Executors:
    """Those of one application."""

    context: SparkContext
    engine: str
    wait_seconds: float
    listener: Listener

    @property
    def count(self) -> int:
        """The driver has a place of its own in this list."""
        status = self.context._jsc.sc().getExecutorMemoryStatus()
        return int(status.size()) - 1

    @property
    def lost(self) -> bool:
        """Whether the master has ended the application."""
        return bool(self.context._jsc.sc().isStopped())

    def wait(self, expected: int | None) -> int:
        """Until the expected ones are there, or those that come have come."""
        began = grown = told = time.monotonic()
        found = 0
        while not self.lost:
            now, count = time.monotonic(), self.count
            if count > found:
                found, grown = count, now
            if found and (found == expected or now - grown > _SETTLED):
                return found
            if not found and now - began > self.wait_seconds:
                raise self._none()
            if not found and now - told > _TELL_EVERY:
                told = now
                self.listener.log(f"Waiting for executors of {self.engine}: all cores are taken")
            time.sleep(_EVERY)
        raise self._removed()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Within it jobs end with an error if all executors are gone for too long."""
        done = threading.Event()
        gone: list[LakeError] = []
        watch = threading.Thread(target=self._watch, args=(done, gone), daemon=True)
        watch.start()
        try:
            yield
        except Exception as error:
            told = of_workers(str(error), self.engine)
            if told is None and (gone or self.lost):
                told = gone[0] if gone else self._removed()
            if told is None:
                raise
            raise told from error
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
        told = trouble(
            f"{self.engine} gave no executor for {self.wait_seconds / 60:g} minutes. Its master's "
            "page shows whether workers are alive and who has their cores; a limit such as "
            "`spark.cores.max` below `spark: conf:` lets runs share them, `wait_minutes` waits "
            "longer. If executors start and end at once, they cannot reach this machine: look "
            "into their logs, in the workers' folder `work`, and set `spark.driver.host`."
        )
        return NoExecutors(str(told))

    def _removed(self) -> LakeError:
        return trouble(
            f"the master at {self.engine} has ended the application. Executors that end at once, "
            "ten times in a row, are the usual cause: their logs, in the workers' folder `work`, "
            "tell why. If they cannot reach this machine, set `spark.driver.host`."
        )


class ClusterDataflow(SparkDataflow):
    """Spark repeats what was lost with a machine; if all are lost, somebody has to be told."""

    def __init__(self, session: SparkSession, executors: Executors) -> None:
        super().__init__(session)
        self._executors = executors

    def stage(self, job: StageJob, tasks: Sequence[Sequence[RawFile]]) -> list[Seen]:
        with self._executors.at_work():
            return super().stage(job, tasks)

    def dedup(self, job: DedupJob) -> list[Deduped]:
        with self._executors.at_work():
            return super().dedup(job)

    def load(self, job: LoadJob, shares: Shares) -> list[LoadedFile]:
        with self._executors.at_work():
            return super().load(job, shares)

    def log(self, job: LogJob, tasks: Sequence[Sequence[NotLoaded]]) -> None:
        with self._executors.at_work():
            super().log(job, tasks)
