"""A standalone cluster of Spark on this machine: a master and workers, each a process."""

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
_SECONDS = 60.0
_KEPT = ("HOME", "JAVA_HOME", "LANG", "PATH", "TMPDIR")
# They do next to nothing, and share the machine with who does the work.
_DAEMON = {
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_NO_DAEMONIZE": "1",
}


class Daemon:
    """A master or a worker; what it starts ends with it."""

    def __init__(self, kind: str, folder: Path, environment: Mapping[str, str], *more: str) -> None:
        self.log = folder / "log"
        folder.mkdir(parents=True)
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        place = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [
                    str(_HOME / "bin" / "spark-class"),
                    f"org.apache.spark.deploy.{kind}",
                    *place,
                    *more,
                ],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=folder,
                env={**kept, "SPARK_HOME": str(_HOME), **_DAEMON, **environment},
                start_new_session=True,  # a group of its own, with all executors that it starts
            )

    def await_line(self, wanted: str) -> re.Match[str]:
        until = time.monotonic() + _SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            if found := re.search(wanted, self.log.read_text(errors="replace")):
                return found
            time.sleep(0.05)
        raise RuntimeError(f"{self.log} lacks {wanted!r}:\n{self.log.read_text()[-2_000:]}")

    def kill(self) -> None:
        """As a machine ends that loses its power: without a word."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Standalone:
    """The cluster, by the URL of its master."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder, self._environment = folder, environment
        self.workers: list[Daemon] = []
        self.master = Daemon("master.Master", folder / "master", environment)
        self.url = self.master.await_line(_STARTED.pattern)[1]

    def add_workers(self, count: int, cores: int = 1, memory: str = "1g") -> None:
        """Begun together, since each takes its time."""
        first = len(self.workers)
        for number in range(first, first + count):
            folder = self._folder / f"worker-{number}"
            room = ["--cores", str(cores), "--memory", memory, "--work-dir", str(folder / "work")]
            local = {"SPARK_LOCAL_DIRS": str(folder / "local"), **self._environment}
            self.workers.append(Daemon("worker.Worker", folder, local, *room, self.url))
        for worker in self.workers[first:]:
            worker.await_line(_REGISTERED)

    def close(self) -> None:
        for daemon in (*self.workers, self.master):
            daemon.kill()


@contextmanager
def standalone(
    folder: Path, workers: int, environment: Mapping[str, str] | None = None
) -> Iterator[Standalone]:
    """A cluster of workers with one core and a gigabyte each, as long as the block runs."""
    cluster = Standalone(folder, environment or {})
    try:
        cluster.add_workers(workers)
        yield cluster
    finally:
        cluster.close()
