"""`datalake dev`: how it starts Dagster, and the real UI once."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from datalake_assets import webserver
from datalake_assets.guard import HOSTS_VARIABLE, Guard
from datalake_assets.instance.home import claim, is_claimed
from tests.support.lakes.jobs import SETTINGS, SampleLake
from tests.support.repo import ROOT, page_at, reserved_port
from tests.support.terminal import datalake


@pytest.fixture
def execve(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Called instead of replacing this process by Dagster."""
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # Ctrl-C stays as it is here
    monkeypatch.setattr(os, "execve", called := Mock())
    return called


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def free_port() -> Iterator[int]:
    with reserved_port() as port:
        yield port


def test_a_port_in_use_is_refused_before_anything_is_written(
    settings_file: Path, busy_port: int, execve: Mock
) -> None:
    result = datalake("dev", "--port", str(busy_port), code=2)
    assert f"Port {busy_port} of 127.0.0.1 cannot be used: Address already in use" in result.err
    assert f"--port {busy_port + 1}" in result.err
    assert list(settings_file.parent.iterdir()) == [settings_file]
    assert not execve.called


@pytest.mark.usefixtures("no_java")
def test_dagster_gets_its_home_the_settings_and_the_address_of_the_ui(
    settings_file: Path, free_port: int, execve: Mock
) -> None:
    result = datalake("dev", "--port", str(free_port))
    assert f"http://127.0.0.1:{free_port}" in result.out
    assert "warning: the UI works, but no run will: Java was not found" in result.err
    [(_, command, environ)] = [call.args for call in execve.mock_calls]
    assert command[:4] == [sys.executable, "-m", "datalake_assets.webserver", "dev"]
    assert command[-4:] == ["-h", "127.0.0.1", "-p", str(free_port)]
    home = settings_file.with_name(".dagster")
    assert (home / "dagster.yaml").exists()
    expected = {
        "DAGSTER_HOME": str(home),
        "DATALAKE_CONFIG": str(settings_file),
        "DATALAKE_WEBSERVER": f"127.0.0.1:{free_port}",
    }
    assert environ.items() >= expected.items()


def test_the_demo_is_shown_only_where_no_settings_are_given(
    tmp_path: Path, free_port: int, execve: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    datalake("dev", "--port", str(free_port), code=2)
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo/lake.yaml").write_text(SETTINGS)
    result = datalake("dev", "--port", str(free_port))
    assert "showing the demo" in result.err
    environ = execve.call_args.args[2]
    assert environ["DATALAKE_CONFIG"] == f"{tmp_path}/demo/lake.yaml"

    datalake("dev", "--config", "mine.yaml", code=2)
    monkeypatch.setenv("DATALAKE_CONFIG", "mine.yaml")
    datalake("dev", code=2)


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


def test_the_webserver_shows_the_console_only_to_those_who_may(
    settings_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    environ = {"DATALAKE_CONFIG": str(settings_file), "DATALAKE_CONSOLE_HOST": "127.0.0.1"}
    assert [route.path for route in webserver.console_routes(environ)] == ["/console"]  # type: ignore[attr-defined]
    assert webserver.console_routes(environ | {"DATALAKE_CONSOLE_HOST": "0.0.0.0"}) == []
    assert "open to everybody" in caplog.text
    assert webserver.console_routes({}) == []


@pytest.mark.e2e
def test_the_ui_starts_and_ctrl_c_ends_it(filled: SampleLake, free_port: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "datalake_assets.cli", "dev", "--port", str(free_port)],
        cwd=filled.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # so that the interrupt reaches the group, as from a keyboard
    ) as process:
        try:
            assert "Dagster" in page_at(f"http://127.0.0.1:{free_port}/", seconds=90)
            for (path, headers), expected in REQUESTS.items():
                url = f"http://127.0.0.1:{free_port}{path}"
                assert _status(url, dict(headers)) == expected, (path, headers)
            assert is_claimed(filled.folder / ".dagster")
        finally:
            os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=60) == 0
    assert not is_claimed(filled.folder / ".dagster")


MUTATION = "/graphql?query=mutation%7BshutdownRepositoryLocation%7D"
REQUESTS = {
    ("/graphql?query=%7Bversion%7D", ()): 403,
    (MUTATION, (("Accept", "application/json"),)): 403,
    ("/", (("Host", "evil.example"),)): 403,
    ("/", (("Host", "localhost:1"),)): 200,
    ("/", (("Origin", "https://evil.example"),)): 403,
    ("/", (("Origin", "null"),)): 403,
    ("/", (("Origin", "http://localhost:8080"), ("Host", "localhost:3000"))): 403,
    ("/", (("Origin", "http://localhost:3000"), ("Host", "localhost:3000"))): 200,
}


def _status(url: str, headers: dict[str, str]) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


@pytest.mark.parametrize(
    ("kind", "host", "origin", "refused"),
    [
        ("http", "lake.example.com", "https://lake.example.com", False),
        ("http", "lake.example.com:443", "https://evil.example", True),
        ("http", "127.0.0.1:3000", "https://lake.example.com", False),  # behind a proxy
        ("http", "[::1]:3000", None, False),
        ("http", "webserver:3000", None, False),  # by the code location, as in compose.yaml
        ("http", "127.0.0.1.evil.example", None, True),
        ("websocket", "localhost:3000", "http://localhost:3000", False),
        ("websocket", "localhost:3000", "https://evil.example", True),
    ],
)
def test_other_sites_are_refused(
    monkeypatch: pytest.MonkeyPatch, kind: str, host: str, origin: str | None, refused: bool
) -> None:
    monkeypatch.setenv(HOSTS_VARIABLE, " Lake.example.com, ")
    monkeypatch.setenv("DATALAKE_WEBSERVER", "webserver:3000")
    passed: list[str] = []
    answered: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        passed.append(scope["type"])

    async def send(message: Any) -> None:
        answered.append(message)

    given = {"host": host, "origin": origin}
    headers = [(name.encode(), value.encode()) for name, value in given.items() if value]
    scope = {"type": kind, "path": "/graphql", "method": "POST", "headers": headers}
    guard = Guard(app, webserver.names())
    asyncio.run(guard(scope, None, send))  # type: ignore[arg-type]
    assert (passed == [], bool(answered)) == (refused, refused)


_IN_THE_BACKGROUND = """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell does for what a script starts with `&`
from datalake_assets.cli.dev import exec_module
statement = "import signal; print(signal.getsignal(signal.SIGINT))"
exec_module(["timeit", "-n1", "-r1", statement], os.environ)
"""


def test_a_process_that_a_script_starts_in_the_background_can_be_ended() -> None:
    """Dagster handles SIGTERM like Ctrl-C, so Ctrl-C must not be ignored."""
    printed = subprocess.check_output([sys.executable, "-c", _IN_THE_BACKGROUND], text=True)
    assert "default_int_handler" in printed


def test_the_console_is_a_separate_process(
    settings_file: Path, free_port: int, busy_port: int, execve: Mock
) -> None:
    assert f"Port {busy_port}" in datalake("console", "--port", str(busy_port), code=2).err
    result = datalake("console", "--host", "0.0.0.0", "--port", str(free_port), code=2)
    assert "open to everybody" in result.err
    assert not execve.called
    datalake("console", "--port", str(free_port))
    [(_, command, environ)] = [call.args for call in execve.mock_calls]
    assert command[1:] == ["-m", "datalake_assets.console", "127.0.0.1", str(free_port)]
    assert environ["DATALAKE_CONFIG"] == str(settings_file)
