"""What Spark says of its workers, in our words."""

import pytest

from eventlake.rules.errors import InvalidSetting
from spark_resources.engines.cluster.errors import HERE, of_workers

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
