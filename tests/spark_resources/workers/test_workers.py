"""Start of Spark workers, and work done ahead of it."""

import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spark_resources.shipping.ship import code_zip
from spark_resources.workers.ahead import PLACE, start_ahead
from spark_resources.workers.start import unpacked

_ENDS_WITHIN = 60


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    monkeypatch.setenv(PLACE, "")
    process = start_ahead()
    yield process
    process.kill()
    process.wait()
    if process.stdin is not None:
        process.stdin.close()
    shutil.rmtree(Path(os.environ[PLACE]).parent, ignore_errors=True)


def started_by_java() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "spark_resources.workers.daemon", "pyspark.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHON_WORKER_FACTORY_SECRET": "secret"},
    )


def forks_workers(daemon: subprocess.Popen[bytes]) -> bool:
    """Whether a worker answers who knows the secret that Java gave to its daemon."""
    assert daemon.stdout is not None
    [port] = struct.unpack("!i", daemon.stdout.read(4))
    with socket.create_connection(("127.0.0.1", port)) as worker:
        worker.sendall(struct.pack("!i", len(b"secret")) + b"secret")
        answer = worker.makefile("rb").read(10)  # its process number comes first
        return answer[4:] == struct.pack("!i", len(b"ok")) + b"ok"


def ends(daemon: subprocess.Popen[bytes]) -> int:
    """Java closes the daemon's input."""
    with daemon:
        assert daemon.stdin is not None
        daemon.stdin.close()
        return daemon.wait(_ENDS_WITHIN)


def test_the_process_that_was_started_ahead_becomes_the_daemon(
    ahead: subprocess.Popen[bytes],
) -> None:
    place = Path(os.environ[PLACE])
    daemon = started_by_java()
    assert forks_workers(daemon)
    assert ahead.poll() is None
    assert ends(daemon) == 0
    ahead.wait(_ENDS_WITHIN)
    assert not place.parent.exists()


def test_without_it_the_daemon_gets_ready_by_itself(ahead: subprocess.Popen[bytes]) -> None:
    ahead.kill()
    ahead.wait()
    daemon = started_by_java()
    assert forks_workers(daemon)
    ends(daemon)


def test_it_ends_with_the_process_that_started_it(ahead: subprocess.Popen[bytes]) -> None:
    assert ahead.stdin is not None
    ahead.stdin.close()
    assert ahead.wait(_ENDS_WITHIN) == 0
    assert not Path(os.environ[PLACE]).parent.exists()


def test_the_code_is_unpacked_once_per_version_and_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    archive = tmp_path / "datalake.zip"
    archive.write_bytes(code_zip())
    with ThreadPoolExecutor(4) as several:
        [folder] = set(several.map(unpacked, [archive] * 4))
    assert (folder / "eventlake/columnar/events.py").exists()
    assert (folder / "spark_resources/workers/daemon.py").exists()
    made = folder.stat().st_mtime_ns
    assert unpacked(archive).stat().st_mtime_ns == made

    archive.write_bytes(archive.read_bytes() + b" ")
    assert unpacked(archive) != folder
