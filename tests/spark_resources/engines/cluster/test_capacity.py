"""Executors are as large as workers have room for, and who asks for more is told at once."""

import pytest

from eventlake.rules.errors import InvalidSetting
from spark_resources.engines.cluster.capacity import (
    Shape,
    Worker,
    expected,
    megabytes,
    refuse_too_small,
    shape_for,
)

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
