"""A standalone Spark cluster on this machine: one process for the master and one per worker."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

_HOME = Path(pyspark.__file__).parent
_STARTED = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = "Successfully registered with master"
_START_SECONDS = 60.0
_PASSED_ON = ("HOME", "JAVA_HOME", "LANG", "PATH", "TMPDIR")
# Master and workers do little themselves: leave memory and CPU to the executors.
_DAEMON = {
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_NO_DAEMONIZE": "1",
}


class Daemon:
    """A master or worker process. Killing it also kills the executors it started."""

    def __init__(
        self, kind: str, folder: Path, environment: Mapping[str, str], *arguments: str
    ) -> None:
        self.log = folder / "log"
        folder.mkdir(parents=True)
        inherited = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        command = [f"{_HOME}/bin/spark-class", f"org.apache.spark.deploy.{kind}"]
        address = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [*command, *address, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=folder,
                env={**inherited, "SPARK_HOME": str(_HOME), **_DAEMON, **environment},
                start_new_session=True,  # its process group includes its executors
            )

    def await_line(self, pattern: str) -> re.Match[str]:
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            if found := re.search(pattern, self.log.read_text(errors="replace")):
                return found
            time.sleep(0.05)
        raise RuntimeError(
            f"{self.log} does not contain {pattern!r}:\n{self.log.read_text()[-2_000:]}"
        )

    def kill(self) -> None:
        """Stop at once, like a machine that loses power."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Standalone:
    """A running cluster; `url` is the address of its master."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder, self._environment = folder, environment
        self.workers: list[Daemon] = []
        self.master = Daemon("master.Master", folder / "master", environment)
        self.url = self.master.await_line(_STARTED.pattern)[1]

    def add_workers(self, count: int, cores: int = 1, memory: str = "1g") -> None:
        """Start the workers in parallel and wait until all of them have registered."""
        first = len(self.workers)
        for number in range(first, first + count):
            folder = self._folder / f"worker-{number}"
            resources = ["--cores", f"{cores}", "--memory", memory, "--work-dir", f"{folder}/work"]
            local = {"SPARK_LOCAL_DIRS": str(folder / "local"), **self._environment}
            self.workers.append(Daemon("worker.Worker", folder, local, *resources, self.url))
        for worker in self.workers[first:]:
            worker.await_line(_REGISTERED)

    def close(self) -> None:
        for daemon in (*self.workers, self.master):
            daemon.kill()


@contextmanager
def standalone(
    folder: Path, workers: int, environment: Mapping[str, str] | None = None
) -> Iterator[Standalone]:
    """Run a cluster whose workers have one core and 1 GB each; stop it at the end of the block."""
    cluster = Standalone(folder, environment or {})
    try:
        cluster.add_workers(workers)
        yield cluster
    finally:
        cluster.close()
