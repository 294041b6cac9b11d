"""The processes of `deploy/compose.yaml`, started on this machine by the commands it names."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

from tests.support.repo import ROOT, reserved_port

COMPOSE = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())
PARTS = ("code", "webserver", "daemon")
T = TypeVar("T")


@dataclass(frozen=True)
class Deployment:
    """Running processes over the lake in a folder."""

    folder: Path
    port: int
    processes: dict[str, subprocess.Popen[bytes]]

    def ask(self, query: str) -> Any:
        """What the webserver answers to a GraphQL query."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/graphql",
            json.dumps({"query": query}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            told = json.load(answer)
        assert "errors" not in told, told
        return told["data"]

    def wait_for(self, what: str, look: Callable[[], T | None], seconds: float) -> T:
        """What it finds, as soon as it does; every process must live meanwhile."""
        end = time.monotonic() + seconds
        while True:
            for part, process in self.processes.items():
                assert process.poll() is None, f"{part} ended:\n{self.log(part)}"
            try:
                if found := look():
                    return found
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                pass
            if time.monotonic() > end:
                logs = "\n".join(f"--- {part}\n{self.log(part)}" for part in self.processes)
                raise AssertionError(f"no {what} within {seconds:.0f} s\n{logs}")
            time.sleep(1)

    def log(self, part: str) -> str:
        return (self.folder / f"{part}.log").read_text()[-6000:]


def environment(folder: Path, ports: dict[str, int], postgres_url: str | None) -> dict[str, str]:
    """As compose has it, but for names and places that only containers have."""
    told = {k: v for k, v in COMPOSE["x-datalake"]["environment"].items() if v is not None}
    here = {
        "DATALAKE_CONFIG": str(folder / "lake.yaml"),
        "DAGSTER_HOME": str(folder / "home"),
        "DATALAKE_CODE_SERVER": f"127.0.0.1:{ports['code']}",
        "DATALAKE_WEBSERVER": f"127.0.0.1:{ports['webserver']}",
        "DAGSTER_PG_URL": postgres_url or "",
    }
    assert here.keys() <= told.keys()
    return told | here


@contextmanager
def deployed(folder: Path, postgres_url: str | None) -> Iterator[Deployment]:
    """All parts, until the block ends; they have to end by themselves on SIGTERM."""
    with ExitStack() as stack:
        ports = {part: stack.enter_context(reserved_port()) for part in ("code", "webserver")}
        here = environment(folder, ports, postgres_url)
        variables = {**os.environ, **here, "PYTHONPATH": str(ROOT)}
        processes = {}
        for part in PARTS:
            log = stack.enter_context((folder / f"{part}.log").open("wb"))
            process = subprocess.Popen(
                command(part, ports),
                cwd=folder,
                env=variables,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            processes[part] = process
            stack.callback(_end, process)
        yield Deployment(folder, ports["webserver"], processes)
        for part in reversed(PARTS):
            processes[part].send_signal(signal.SIGTERM)
            processes[part].wait(timeout=60)


def command(part: str, ports: dict[str, int]) -> list[str]:
    """The command of a part, as compose names it, listening here and on a port that is free."""
    words: list[str] = COMPOSE["services"][part]["command"]
    assert words[0] == "datalake"
    here = [sys.executable, "-m", "datalake_assets.cli", *words[1:]]
    if part in ports:
        here[here.index("--host") + 1] = "127.0.0.1"
        here[here.index("--port") + 1] = str(ports[part])
    return here


def _end(process: subprocess.Popen[bytes]) -> None:
    """Whatever is left of it."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=30)
