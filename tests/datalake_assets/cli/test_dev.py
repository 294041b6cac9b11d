"""`datalake dev`: what it hands over to Dagster, and the real UI once."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from datalake_assets.instance.home import claim, is_claimed
from tests.support.lakes.jobs import SETTINGS, SampleLake
from tests.support.repo import ROOT, reserved_port
from tests.support.terminal import Terminal


@dataclass
class Handover:
    """What would have become of this process."""

    command: list[str] = field(default_factory=list)
    environ: dict[str, str] = field(default_factory=dict)

    def __call__(self, program: str, command: list[str], environ: dict[str, str]) -> None:
        self.command, self.environ = command, environ


@pytest.fixture
def handover(monkeypatch: pytest.MonkeyPatch) -> Handover:
    caught = Handover()
    monkeypatch.setattr(os, "execve", caught)
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # Ctrl-C stays as it is here
    return caught


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def free_port() -> Iterator[int]:
    with reserved_port() as port:
        yield port


def test_a_port_in_use_is_refused_before_anything_is_written(
    terminal: Terminal, tmp_path: Path, busy_port: int, handover: Handover
) -> None:
    (tmp_path / "lake.yaml").write_text(SETTINGS)
    said = terminal.run("dev", "--port", str(busy_port))
    assert said.code == 2
    assert f"Port {busy_port} of 127.0.0.1 cannot be used: Address already in use" in said.err
    assert f"--port {busy_port + 1}" in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["lake.yaml"]
    assert handover.command == []


def test_dagster_gets_its_home_the_settings_and_where_the_ui_is(
    terminal: Terminal, tmp_path: Path, free_port: int, handover: Handover
) -> None:
    (tmp_path / "lake.yaml").write_text(SETTINGS)
    said = terminal.run("dev", "--port", str(free_port), "--schedules")
    assert said.code == 0
    assert f"http://127.0.0.1:{free_port}" in said.out
    assert handover.command[:4] == [sys.executable, "-m", "dagster", "dev"]
    assert handover.command[-4:] == ["-h", "127.0.0.1", "-p", str(free_port)]
    assert (tmp_path / ".dagster/dagster.yaml").exists()
    expected = {
        "DAGSTER_HOME": f"{tmp_path}/.dagster",
        "DATALAKE_CONFIG": f"{tmp_path}/lake.yaml",
        "DATALAKE_WEBSERVER": f"127.0.0.1:{free_port}",
        "DATALAKE_SCHEDULES": "on",
    }
    assert {name: handover.environ[name] for name in expected} == expected


def test_without_settings_the_demo_is_shown_if_there_is_one(
    terminal: Terminal, tmp_path: Path, free_port: int, handover: Handover
) -> None:
    assert terminal.run("dev", "--port", str(free_port)).code == 2
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo/lake.yaml").write_text(SETTINGS)
    said = terminal.run("dev", "--port", str(free_port))
    assert "showing the demo" in said.err
    assert handover.environ["DATALAKE_CONFIG"] == f"{tmp_path}/demo/lake.yaml"
    assert handover.environ["DATALAKE_SCHEDULES"] == "off"


def test_settings_that_were_named_are_not_replaced_by_the_demo(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo/lake.yaml").write_text(SETTINGS)
    assert terminal.run("dev", "--config", "mine.yaml").code == 2
    monkeypatch.setenv("DATALAKE_CONFIG", "mine.yaml")
    assert terminal.run("dev").code == 2


@pytest.mark.usefixtures("no_java")
def test_without_java_the_ui_still_starts_with_a_warning(
    terminal: Terminal, tmp_path: Path, free_port: int, handover: Handover
) -> None:
    (tmp_path / "lake.yaml").write_text(SETTINGS)
    said = terminal.run("dev", "--port", str(free_port))
    assert said.code == 0
    assert "warning: the UI works, but no run will: Java was not found" in said.err


def test_a_home_is_claimed_for_as_long_as_its_process_lives(tmp_path: Path) -> None:
    assert not is_claimed(tmp_path)
    hold = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from pathlib import Path; " + (
        f"from datalake_assets.instance.home import claim; print(claim(Path({str(tmp_path)!r})));"
        "sys.stdout.flush(); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        assert is_claimed(tmp_path)
        assert not claim(tmp_path)
    assert not is_claimed(tmp_path)


@pytest.mark.e2e
def test_the_ui_comes_up_and_ctrl_c_ends_it(filled: SampleLake, free_port: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "datalake_assets.cli", "dev", "--port", str(free_port)],
        cwd=filled.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # so that the interrupt reaches the group, as from a keyboard
    ) as process:
        try:
            assert "Dagster" in _page(f"http://127.0.0.1:{free_port}/", patience=90)
            assert is_claimed(filled.folder / ".dagster")
        finally:
            os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=60) == 0
    assert not is_claimed(filled.folder / ".dagster")


def _page(url: str, patience: float) -> str:
    end = time.monotonic() + patience
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                text: str = answer.read().decode()
                return text
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


_IN_THE_BACKGROUND = """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell does for what a script starts with `&`
from datalake_assets.cli.serve import exec_module
told = "import signal; print(signal.getsignal(signal.SIGINT))"
exec_module(["timeit", "-n1", "-r1", told], os.environ)
"""


def test_what_a_script_starts_in_the_background_can_be_ended() -> None:
    """Dagster has SIGTERM do what Ctrl-C does: that must not be nothing."""
    told = subprocess.run(
        [sys.executable, "-c", _IN_THE_BACKGROUND], capture_output=True, text=True, check=True
    )
    assert "default_int_handler" in told.stdout
