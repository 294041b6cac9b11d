"""Waiting for executors ends, whatever the cluster does."""

import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from eventlake.runs.context import Silent
from spark_resources.engines.cluster.errors import NoExecutors
from spark_resources.engines.cluster.executors import Executors


@dataclass
class Application:
    """As much of Spark as is asked: how many executors there are, by and by."""

    counts: list[int]
    cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def _jsc(self) -> Any:
        return self

    def sc(self) -> "Application":
        return self

    def isStopped(self) -> bool:
        return self.counts == []

    def getExecutorMemoryStatus(self) -> "Application":
        return self

    def size(self) -> int:
        return 1 + (self.counts.pop(0) if len(self.counts) > 1 else self.counts[0])

    def cancelAllJobs(self) -> None:
        self.cancelled.set()


def executors(application: Application, wait_seconds: float = 0.3) -> Executors:
    context: Any = application
    return Executors(context, "spark://m:7077", wait_seconds, Silent())


def test_all_that_are_expected_are_waited_for() -> None:
    assert executors(Application([0, 1, 1, 2])).wait(expected=2) == 2


def test_none_within_the_time_is_an_error_that_says_where_to_look() -> None:
    with pytest.raises(NoExecutors, match=r"gave no executor .* `spark\.cores\.max`"):
        executors(Application([0])).wait(expected=2)


def test_an_application_that_its_master_ended_is_told() -> None:
    with pytest.raises(Exception, match="has ended the application"):
        executors(Application([])).wait(expected=2)


def test_a_job_that_has_lost_all_executors_for_too_long_is_cancelled() -> None:
    application = Application([0])
    with pytest.raises(NoExecutors), executors(application, 0.1).at_work():
        assert application.cancelled.wait(30)
        raise RuntimeError("Job 3 cancelled")


def test_an_error_of_the_work_itself_comes_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError), executors(Application([2])).at_work():
        raise ZeroDivisionError
