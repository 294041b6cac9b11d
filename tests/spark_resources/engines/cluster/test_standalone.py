"""The standalone cluster: its master, capacity, workers, executors and errors."""

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
from spark_resources.engines.cluster.errors import HERE, NoExecutors, of_workers
from spark_resources.engines.cluster.executors import Executors
from spark_resources.engines.cluster.master import (
    Master,
    Shape,
    Worker,
    expected,
    masters,
    megabytes,
    own_address_to,
    reach,
    refuse_too_small,
    shape_for,
)
from spark_resources.engines.cluster.workers import packages_to_ship, refuse_blind
from spark_resources.shipping.environment import Target, pins
from spark_resources.workers.probe import WorkerLook, look
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
    assert masters("spark://one:7077,other:7078") == [Master("one", 7077), Master("other", 7078)]


def test_the_first_that_answers_is_taken_and_tells_our_own_address(
    listening: int, unused: int
) -> None:
    reached = reach(f"spark://127.0.0.1:{unused},127.0.0.1:{listening}")
    assert reached.master.port == listening
    assert reached.own_address == "127.0.0.1"


def test_nobody_there_is_told_at_once_with_what_to_do(unused: int) -> None:
    engine = f"spark://127.0.0.1:{unused}"
    with pytest.raises(ServiceTrouble) as caught:
        reach(engine)
    told = str(caught.value)
    assert told.startswith(
        f"Spark did not answer as it should: there is no Spark master at {engine}"
    )
    assert "Connection refused" in told
    assert "correct `engine`" in told


def test_a_name_that_nobody_knows_is_a_wrong_setting() -> None:
    with pytest.raises(InvalidSetting, match=r"no-such-host\.invalid has no address"):
        reach("spark://no-such-host.invalid:7077")


def test_executors_are_told_the_address_that_leads_to_them() -> None:
    assert own_address_to("127.0.0.1", "?") == "127.0.0.1"
    assert own_address_to("no-such-host.invalid", "10.0.0.9") == "10.0.0.9"


SMALL, LARGE = Worker("small", 1, 1_024), Worker("large", 16, 65_536)


@pytest.mark.parametrize(
    ("workers", "conf", "shape"),
    [
        ([SMALL, SMALL], {}, Shape(1, 1_024)),
        ([LARGE], {}, Shape(2, 2_048)),
        ([LARGE, SMALL], {}, Shape(1, 1_024)),
        ([Worker("lean", 4, 2_048)], {}, Shape(2, 1_024)),
        ([Worker("too lean", 8, 1_024)], {}, Shape(2, 512)),
        ([LARGE], {"spark.executor.cores": "4"}, Shape(4, 4_096)),
        ([LARGE], {"spark.executor.memory": "3g"}, Shape(2, 3_072)),
    ],
)
def test_executors_fit_the_workers_unless_the_settings_say_more(
    workers: list[Worker], conf: dict[str, str], shape: Shape
) -> None:
    assert shape_for(workers, conf) == shape


@pytest.mark.parametrize(
    ("conf", "executors"), [({}, 16), ({"spark.cores.max": "6"}, 3), ({"spark.cores.max": "1"}, 1)]
)
def test_so_many_are_waited_for(conf: dict[str, str], executors: int) -> None:
    assert expected([LARGE, LARGE], Shape(2, 2_048), conf) == executors


@pytest.mark.parametrize(
    ("size", "mb"), [("2g", 2_048), ("512m", 512), ("1T", 1_048_576), ("3gb", 3_072)]
)
def test_sizes_are_read_as_spark_does(size: str, mb: int) -> None:
    assert megabytes(size) == mb


def test_a_cluster_without_workers_is_refused() -> None:
    with pytest.raises(InvalidSetting, match=r"^Data lake has .* no worker has registered"):
        refuse_too_small([], Shape(1, 512), "spark://m:7077")


def test_an_executor_that_fits_nowhere_is_refused_with_what_would_fit() -> None:
    refuse_too_small([SMALL, LARGE], Shape(2, 2_048), "spark://m:7077")
    with pytest.raises(InvalidSetting) as caught:
        refuse_too_small([SMALL, SMALL], Shape(2, 2_048), "spark://m:7077")
    told = str(caught.value)
    assert "asks for 2 cores and 2,048 MB; the largest are small (1 core, 1,024 MB)" in told
    assert "spark.executor.cores" in told


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
def test_it_says_what_to_do(said: str, told: str) -> None:
    error = of_workers(said, MASTER)
    assert isinstance(error, InvalidSetting)
    assert told in str(error)
    assert str(error).startswith("Data lake has invalid configuration for `engine`: ")


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


OURS = pins(Target(platform.machine(), HERE))
LIKE_US = WorkerLook("a", platform.machine(), dict(OURS), True)
BARE = LIKE_US._replace(host="b", versions=dict.fromkeys(OURS))
OLDER = LIKE_US._replace(host="c", versions=OURS | {"pyarrow": "1.0"})
ENGINE = "spark://m:7077"


def test_this_machine_looked_at_by_itself(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    seen.touch()
    [found] = look(["pyarrow", "no-such-package"], str(seen))
    assert found.versions == {"pyarrow": OURS["pyarrow"], "no-such-package": None}
    assert (found.machine, found.sees_file) == (os.uname().machine, True)
    assert [one.sees_file for one in look([], str(tmp_path / "missing"))] == [False]


@pytest.mark.parametrize(
    ("looks", "ship"), [([LIKE_US], False), ([LIKE_US, BARE], True), ([OLDER], True)]
)
def test_packages_are_brought_unless_all_have_the_very_same(
    looks: list[WorkerLook], ship: bool
) -> None:
    target = Target(platform.machine(), HERE) if ship else None
    assert packages_to_ship(looks, ENGINE) == target


def test_they_cannot_be_brought_to_two_kinds_of_processors() -> None:
    other = BARE._replace(machine="other")
    with pytest.raises(InvalidSetting, match="different processors"):
        packages_to_ship([BARE, other], ENGINE)


def test_workers_that_have_another_folder_of_that_name_are_refused(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    refuse_blind([LIKE_US], storage)
    with pytest.raises(InvalidSetting) as caught:
        refuse_blind([LIKE_US, BARE._replace(sees_file=False)], storage)
    told = str(caught.value)
    assert told.startswith("Data lake has invalid configuration for `storage`: worker b of the")
    assert "s3://bucket" in told
