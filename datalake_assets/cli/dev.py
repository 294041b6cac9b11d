"""`datalake dev` and `datalake serve`: the processes of Dagster."""

import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from datalake_assets.cli.invocation import Invocation, invocation
from datalake_assets.cli.output import note, say, warn
from datalake_assets.instance.dagster_private import DAEMON_MODULE
from datalake_assets.instance.home import claim, ensure_home, leave_home, opened_instance
from datalake_assets.instance.links import CONSOLE_VARIABLE
from datalake_assets.sensors.reload import WEBSERVER_VARIABLE
from eventlake.rules.errors import LakeError, UsageError
from eventlake.settings.file import FILE_VARIABLE
from spark_resources.engines.java import require_java

DEMO = Path("demo/lake.yaml")
"""The default settings file of the demo."""
_HIGHEST_PORT = 65_535


def dev(
    context: typer.Context,
    port: Annotated[int, typer.Option(min=1, max=_HIGHEST_PORT, help="Port of the UI.")] = 3000,
    host: Annotated[str, typer.Option(help="Address of the UI.")] = "127.0.0.1",
) -> None:
    """Start the Dagster UI and its daemon for the lake; Ctrl-C stops them.

    Schedules run as lake.yaml says: `schedule: off` switches them off.

    Without a lake.yaml, it shows the lake of the demo in ./demo, if there is one.

    \b
    Examples:
      datalake dev
      datalake dev --port 4000
    """
    chosen = or_demo(invocation(context))
    settings = chosen.settings()
    require_free(host, port)
    if not settings.on_emr:
        _warn_without_java()
    home = ensure_home(settings)
    if not claim(home):
        warn(f"another UI runs on {home} already; both will show the same runs")
    environ = {
        **os.environ,
        FILE_VARIABLE: str(chosen.file()),
        WEBSERVER_VARIABLE: f"{host}:{port}",
        CONSOLE_VARIABLE: host,
    }
    workspace = Path(__file__).parent.with_name("workspace.yaml")
    say(f"The UI will be at http://{host}:{port} in a few seconds, the console at", style="bold")
    say(f"http://{host}:{port}/console; Ctrl-C stops them.", style="bold")
    exec_module([WEBSERVER, "dev", "-w", str(workspace), "-h", host, "-p", str(port)], environ)


def or_demo(asked: Invocation) -> Invocation:
    named = asked.config is not None or os.environ.get(FILE_VARIABLE)
    if named or asked.file().exists() or not DEMO.exists():
        return asked
    note(f"No {asked.file().name} here; showing the demo: {DEMO}")
    leave_home()  # the demo has its own runs
    return Invocation(DEMO)


def require_free(host: str, port: int) -> None:
    """Refuse a port that is in use, before anything is started or written."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            # As the web server does: a port that it has just left counts as free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        raise UsageError(
            f"Port {port} of {host} cannot be used: {error.strerror}. If another UI runs there, "
            f"stop it; or choose another port, such as --port {port % _HIGHEST_PORT + 1}."
        ) from None


def _warn_without_java() -> None:
    try:
        require_java()
    except LakeError as error:
        warn(f"the UI works, but no run will: {error}")


class Part(StrEnum):
    """The processes of a deployment; it has one of each."""

    CODE = "code"
    WEBSERVER = "webserver"
    DAEMON = "daemon"


_PORTS = {Part.CODE: 4000, Part.WEBSERVER: 3000}
WEBSERVER = "datalake_assets.webserver"
CODE_VARIABLE = "DATALAKE_CODE_SERVER"
"""host:port of `datalake serve code`, for webserver and daemon."""


def serve(
    context: typer.Context,
    part: Annotated[Part, typer.Argument(help="code: definitions and runs.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(min=1, max=65_535, help="Default: 4000 (code), 3000 (webserver).")
    ] = None,
) -> None:
    """Run one Dagster process, for containers and process managers; it stops on SIGTERM.

    The code server has the definitions and executes runs. Webserver and daemon connect to it at
    $DATALAKE_CODE_SERVER (host:port); without that variable, each loads the definitions itself.
    If $DAGSTER_PG_URL is set, runs and events are stored in that Postgres database.

    \b
    Examples:
      datalake serve code --host 0.0.0.0
      datalake serve webserver --host 0.0.0.0
      datalake serve daemon
    """
    chosen = invocation(context)
    settings = chosen.settings()
    with opened_instance(ensure_home(settings)):
        pass  # the parts of a deployment start at once, and one of them creates the databases
    environ = {**os.environ, FILE_VARIABLE: str(chosen.file()), CONSOLE_VARIABLE: host}
    command = _command(part, host, port or _PORTS.get(part, 0), environ)
    exec_module(command, environ)


def _command(part: Part, host: str, port: int, environ: dict[str, str]) -> list[str]:
    listening = ["-h", host, "-p", str(port)]
    if part is Part.CODE:
        code = ["-m", "datalake_assets.definitions", "--location-name", "datalake"]
        return ["dagster", "code-server", "start", *code, *listening]
    workspace = ["-w", str(_workspace(environ))]
    if part is Part.WEBSERVER:
        return [WEBSERVER, *workspace, *listening]
    return [DAEMON_MODULE, "run", *workspace]


def _workspace(environ: dict[str, str]) -> Path:
    """Where the definitions are loaded: in the code server, or in the process itself."""
    folder = Path(__file__).parents[1]
    server = environ.get(CODE_VARIABLE)
    if not server:
        return folder / "workspace.yaml"
    host, _, port = server.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(
            f"${CODE_VARIABLE} is {server!r}; set it to host:port of `datalake serve code`, "
            "or unset it."
        )
    # Dagster reads host and port from separate variables.
    environ |= {"DATALAKE_CODE_HOST": host, "DATALAKE_CODE_PORT": port}
    return folder / "workspace_served.yaml"


def exec_module(module: Sequence[str], environ: Mapping[str, str]) -> NoReturn:
    """Replace this process with a Python module, which gets its signals and sets the exit code."""
    # Background jobs of a script ignore SIGINT, and Dagster handles SIGTERM like SIGINT: only
    # `kill -9` would stop it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execve(sys.executable, [sys.executable, "-m", *module], dict(environ))
