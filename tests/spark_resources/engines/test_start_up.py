"""How Spark starts, and how it is warmed up."""

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from spark_resources.engines import java
from spark_resources.engines.java import JAVA_OPTIONS, filtered_stderr, with_archive


def test_without_an_archive_the_settings_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    assert with_archive({"a": "b"}) == {"a": "b"}


def test_an_archive_is_handed_to_java_beside_its_other_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    java.archive().parent.mkdir(parents=True)
    java.archive().touch()
    given, *added = with_archive({JAVA_OPTIONS: "-Xmx1g"})[JAVA_OPTIONS].split()
    assert given == "-Xmx1g"
    assert f"-XX:SharedArchiveFile={java.archive()}" in added


def test_only_the_warning_of_the_module_is_hidden(capfd: pytest.CaptureFixture[str]) -> None:
    lines = "WARNING: Using incubator modules: jdk.incubator.vector\nhelp\n"
    others = set(threading.enumerate())
    with filtered_stderr():
        script = f"printf '{lines}' >&2; read line; echo late >&2"
        java = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, text=True)
    os.write(2, b"after\n")
    java.communicate("go\n")
    for thread in set(threading.enumerate()) - others:
        thread.join(timeout=30)
    assert sorted(capfd.readouterr().err.splitlines()) == ["after", "help", "late"]


pytestmark = pytest.mark.spark

# An environment is known by its prefix; where it is elsewhere, so is the archive.
ELSEWHERE = "import sys; sys.prefix = sys.argv.pop(1); from spark_resources import warm_up; "
START = (
    "from pyspark.sql import SparkSession;"
    "from spark_resources.engines.java import JAVA_OPTIONS, with_archive;"
    "from spark_resources.engines.session import SPARK_CONFIG;"
    "config = with_archive(SPARK_CONFIG);"
    "config[JAVA_OPTIONS] += f' -Xlog:class+load:file={sys.argv.pop(1)}';"
    "session = SparkSession.builder.config(map=config).getOrCreate();"
    "print(session.range(5).count())"
)
# An archive fits only the class path it was made with; Java would warn of that.
OTHER_CLASS_PATH = (
    "from spark_resources.engines.session import SPARK_CONFIG;"
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
