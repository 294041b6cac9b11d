"""`python -m spark_resources.warm_up` in an environment of its own, and a session after it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

# An environment is known by its prefix; where it is elsewhere, so is the archive.
ELSEWHERE = "import sys; sys.prefix = sys.argv.pop(1); from spark_resources import warm_up; "
START = (
    "from pyspark.sql import SparkSession;"
    "from spark_resources.engines.java import JAVA_OPTIONS, with_archive;"
    "from spark_resources.engines.local import SPARK_CONFIG;"
    "config = with_archive(SPARK_CONFIG);"
    "config[JAVA_OPTIONS] += f' -Xlog:class+load:file={sys.argv.pop(1)}';"
    "session = SparkSession.builder.config(map=config).getOrCreate();"
    "print(session.range(5).count())"
)
# An archive fits only the class path it was made with; Java would warn of that.
OTHER_CLASS_PATH = (
    "from spark_resources.engines.local import SPARK_CONFIG;"
    "SPARK_CONFIG['spark.driver.extraClassPath'] = sys.prefix;"
)


def run(prefix: Path, program: str, *arguments: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE + program, str(prefix), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )
    return done.stdout.strip()


def source_of_spark(log: Path) -> str:
    """Where Java found the class of Spark's context; "top" is the archive given to it."""
    loaded = r"org\.apache\.spark\.SparkContext source: (.*)"
    [source] = re.findall(loaded, log.read_text())
    return str(source)


def test_spark_starts_from_the_archive_that_a_small_sync_leaves(tmp_path: Path) -> None:
    prefix, log = tmp_path / "prefix", tmp_path / "classes.log"
    made = Path(run(prefix, "warm_up.main()").splitlines()[-1])
    assert made.is_relative_to(prefix)
    assert [file.name for file in made.parent.iterdir()] == [made.name]

    assert run(prefix, START, log) == "5"
    assert source_of_spark(log) == "shared objects file (top)"

    assert run(prefix, OTHER_CLASS_PATH + START, log) == "5"
    assert source_of_spark(log).endswith(".jar")

    made.chmod(0o644)
    made.write_bytes(b"rubbish")
    assert run(prefix, START, log) == "5"
    assert source_of_spark(log).endswith(".jar")
