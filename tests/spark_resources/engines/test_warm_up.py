"""`python -m spark_resources.warm_up` in an environment of its own, and a session after it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

# An environment is known by its prefix; where it is elsewhere, so is the archive.
ELSEWHERE = "import sys; sys.prefix = sys.argv.pop(1); from spark_resources import warm_up; "
START = (
    "from pyspark.sql import SparkSession;"
    "from spark_resources.engines.class_archive import with_archive;"
    "from spark_resources.engines.local import SPARK_CONFIG;"
    "session = SparkSession.builder.config(map=with_archive(SPARK_CONFIG)).getOrCreate();"
    "print(session.range(5).count())"
)


def run(prefix: Path, program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ELSEWHERE + program, str(prefix)],
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )


def test_spark_starts_from_the_archive_that_a_small_sync_leaves(tmp_path: Path) -> None:
    made = Path(run(tmp_path, "warm_up.main()").stdout.strip().splitlines()[-1])
    assert made.is_relative_to(tmp_path)
    assert [file.name for file in made.parent.iterdir()] == [made.name]

    started = run(tmp_path, START)
    assert started.stdout.strip().endswith("5")

    made.chmod(0o644)
    made.write_bytes(b"rubbish")
    assert run(tmp_path, START).stdout.strip().endswith("5")
