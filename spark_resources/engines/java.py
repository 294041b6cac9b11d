"""The Java that Spark runs on: version, class archive, standard error; settings engines share.

The class archive (CDS) halves the start time of Spark. `make setup` creates it
(`spark_resources.warm_up`). Without an archive, or with one of another Java version, Spark starts
normally.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from typing import Any

from eventlake.rules.errors import UsageError

NEEDED = 17
_REMEDY = (
    f"Spark needs Java {NEEDED} or newer. Install it (`apt-get install openjdk-17-jre-headless`, "
    "`brew install openjdk@17`, or run `make setup`, which does), or set JAVA_HOME to one you have."
)

# The JVM only schedules tasks: optimizing compilers and parallel garbage collection would take
# CPU time from the Python workers.
FRUGAL_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def require_java() -> int:
    """The version of the Java that Spark uses; raises an error with the fix if there is none."""
    home = os.environ.get("JAVA_HOME")
    program = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if program is None or not os.access(program, os.X_OK):
        where = f"JAVA_HOME is {home}, but {program} is no program" if home else "it is not on PATH"
        raise UsageError(f"Java was not found: {where}. {_REMEDY}")
    done = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    found = java_version(done.stderr + done.stdout)
    if found is None or found < NEEDED:
        raise UsageError(f"{program} is Java {found or 'of an unknown version'}. {_REMEDY}")
    return found


def java_version(text: str) -> int | None:
    """The major version in what `java -version` prints: 17.0.15 is 17, 1.8.0 is 8."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match[1]) if match else None


JAVA_OPTIONS = "spark.driver.extraJavaOptions"


def archive() -> Path:
    """The path of the archive for the PySpark of this environment."""
    return Path(sys.prefix) / "share" / "datalake" / f"spark-{version('pyspark')}.jsa"


def with_archive(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a session whose classes come from the archive, if there is one."""
    if not archive().exists():
        return dict(config)
    # Without `-Xlog:disable`, Java prints why it does not use an archive.
    return _with_options(config, f"-XX:SharedArchiveFile={archive()} -Xshare:auto -Xlog:disable")


def make_archive(config: Mapping[str, Any], work: Callable[[dict[str, Any]], None]) -> Path:
    """Run some work on Spark with these settings and archive the classes that it loads."""
    target = archive()
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_suffix(f".{os.getpid()}")
    work(_with_options(config, f"-XX:ArchiveClassesAtExit={draft} -Xlog:disable"))
    _end_java()
    draft.replace(target)
    return target


def _end_java() -> None:
    """Java writes the archive when it ends."""
    from pyspark import SparkContext

    context, gateway = SparkContext._active_spark_context, SparkContext._gateway
    if context is not None:
        context.stop()
    if gateway is not None:
        gateway.shutdown()
        process: Any = gateway.proc
        process.stdin.close()
        process.wait(120)


def _with_options(config: Mapping[str, Any], options: str) -> dict[str, Any]:
    return {**config, JAVA_OPTIONS: f"{config.get(JAVA_OPTIONS, '')} {options}".strip()}


# Spark adds this module at every start, and Java prints a warning before logging is set up.
_MODULE_WARNING = b"WARNING: Using incubator modules"


@contextmanager
def filtered_stderr() -> Iterator[None]:
    """Forward the standard error of a JVM that starts inside, without the warning of its module."""
    sys.stderr.flush()
    terminal = os.dup(2)
    source, written = os.pipe()
    os.dup2(written, 2)
    os.close(written)
    # The thread closes its own descriptor: closing this one would let another file take its number.
    forwarding = (source, os.dup(terminal))
    Thread(target=_forward, args=forwarding, name="JVM stderr", daemon=True).start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(terminal, 2)
        os.close(terminal)


def _forward(source: int, terminal: int) -> None:
    """Forward lines until the JVM closes its end of the pipe."""
    with os.fdopen(source, "rb") as lines, os.fdopen(terminal, "wb", buffering=0) as out:
        for line in lines:
            if not line.startswith(_MODULE_WARNING):
                out.write(line)
