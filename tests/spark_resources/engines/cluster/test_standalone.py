"""The standalone cluster: its master, workers, executors and errors."""

import os
import platform
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from eventlake.rules.errors import InvalidSetting, ServiceTrouble
from eventlake.runs.context import Silent
from eventlake.storage import LocalStorage
from spark_resources.engines.cluster.engine import masters, reach
from spark_resources.engines.cluster.executors import (
    HERE,
    Executors,
    NoExecutors,
    of_workers,
    packages_to_ship,
    refuse_blind,
)
from spark_resources.shipping import Target, pins
from spark_resources.workers.probe import Worker, log_kernels, report
from tests.support.lakes.on_emr import Heard
from tests.support.repo import reserved_port


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def unused() -> Iterator[int]:
    with reserved_port() as port:
        yield port


def test_there_may_be_several_masters() -> None:
    assert masters("spark://one:7077,[::1]:7078") == [("one", 7077), ("::1", 7078)]


def test_the_first_master_that_answers_is_used(listening: int, unused: int) -> None:
    assert reach(f"spark://127.0.0.1:{unused},127.0.0.1:{listening}") == "127.0.0.1"


def test_without_a_master_the_error_explains_what_to_do(unused: int) -> None:
    engine = f"spark://127.0.0.1:{unused}"
    with pytest.raises(ServiceTrouble) as caught:
        reach(engine)
    message = str(caught.value)
    assert message.startswith(
        f"Spark did not answer as it should: there is no Spark master at {engine}"
    )
    assert "Connection refused" in message
    assert "correct `engine`" in message


def test_a_host_without_an_address_is_a_wrong_setting() -> None:
    with pytest.raises(InvalidSetting, match=r"no-such-host\.invalid has no address"):
        reach("spark://no-such-host.invalid:7077")


MASTER = "spark://m:7077"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "Lost task 0.3 (TID 7) (10.0.0.3 executor 1): java.io.IOException: Cannot run program "
            '"python3.11" (in directory "."): error=2, No such file or directory\n\tat java.base',
            "the workers of spark://m:7077 cannot run 'python3.11' (error=2, No such file or",
        ),
        (
            "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python "
            "in worker has different version: 3.9 than that in driver: 3.11, PySpark cannot run",
            f"run Python 3.9, this is Python {HERE}. Set `python` under `spark`",
        ),
        (
            "ModuleNotFoundError: No module named 'pyarrow'\n",
            "a worker of spark://m:7077 has no Python package 'pyarrow'",
        ),
    ],
)
def test_the_message_explains_what_to_do(said: str, told: str) -> None:
    error = of_workers(said, MASTER)
    assert isinstance(error, InvalidSetting)
    assert told in str(error)
    assert str(error).startswith("Eventlake has invalid configuration for `engine`: ")


def test_what_is_not_about_workers_is_left_alone() -> None:
    assert of_workers("java.lang.OutOfMemoryError: Java heap space", MASTER) is None


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


def test_the_executors_that_start_together_are_waited_for() -> None:
    assert executors(Application([0, 1, 1, 2])).wait().count == 2


def test_without_an_executor_the_error_says_where_to_look() -> None:
    with pytest.raises(NoExecutors, match=r"gave no executor .* `spark\.cores\.max`"):
        executors(Application([0])).wait()


def test_the_error_of_an_ended_application_says_where_to_look() -> None:
    with pytest.raises(Exception, match="has ended the application"):
        executors(Application([])).wait()


def test_a_job_that_has_lost_all_executors_for_too_long_is_cancelled() -> None:
    application = Application([0])
    with pytest.raises(NoExecutors), executors(application, 0.1).at_work():
        assert application.cancelled.wait(30)
        raise RuntimeError("Job 3 cancelled")


def test_an_error_of_the_work_itself_is_not_changed() -> None:
    with pytest.raises(ZeroDivisionError), executors(Application([2])).at_work():
        raise ZeroDivisionError


OURS = pins(Target(platform.machine(), HERE))
LIKE_US = Worker("a", platform.machine(), dict(OURS), True, (40, 0))
BARE = LIKE_US._replace(host="b", versions=dict.fromkeys(OURS))
OLDER = LIKE_US._replace(host="c", versions=OURS | {"pyarrow": "1.0"})
ENGINE = "spark://m:7077"


def test_this_machine_probed_by_itself(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    seen.touch()
    [found] = report(["pyarrow", "no-such-package"], str(seen))
    assert found.versions == {"pyarrow": OURS["pyarrow"], "no-such-package": None}
    assert (found.machine, found.sees_file) == (os.uname().machine, True)
    assert [one.sees_file for one in report([], str(tmp_path / "missing"))] == [False]


@pytest.mark.parametrize(
    ("looks", "ship"), [([LIKE_US], False), ([LIKE_US, BARE], True), ([OLDER], True)]
)
def test_packages_are_shipped_unless_all_workers_have_the_same(
    looks: list[Worker], ship: bool
) -> None:
    target = Target(platform.machine(), HERE) if ship else None
    assert packages_to_ship(looks, ENGINE) == target


def test_packages_cannot_be_shipped_for_two_kinds_of_processors() -> None:
    other = BARE._replace(machine="other")
    with pytest.raises(InvalidSetting, match="different processors"):
        packages_to_ship([BARE, other], ENGINE)


def test_workers_that_have_another_folder_of_that_name_are_refused(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    refuse_blind([LIKE_US], storage)
    with pytest.raises(InvalidSetting) as caught:
        refuse_blind([LIKE_US, BARE._replace(sees_file=False)], storage)
    told = str(caught.value)
    assert told.startswith("Eventlake has invalid configuration for `storage`: worker b of the")
    assert "s3://bucket" in told


@pytest.mark.parametrize(
    ("workers", "logged", "warnings"),
    [
        ([LIKE_US, LIKE_US], "Kernels of 2 workers: 40 from the cache, 0 compiled", 0),
        ([LIKE_US, LIKE_US._replace(kernels=(1, 39))], "40 from the cache, 39 compiled", 0),
        ([LIKE_US, LIKE_US._replace(kernels=None)], "Kernels of 1 workers", 1),
    ],
)
def test_the_log_has_the_number_of_compiled_kernels(
    workers: list[Worker], logged: str, warnings: int
) -> None:
    heard = Heard()
    log_kernels(workers, heard)
    assert logged in heard.logged[0]
    assert len(heard.warnings) == warnings
