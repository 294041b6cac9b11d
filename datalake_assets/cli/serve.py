"""`datalake serve`: the processes of Dagster in production, one by one."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from datalake_assets.cli.invocation import invocation
from datalake_assets.instance.home import ensure_home
from eventlake.rules.errors import UsageError
from eventlake.settings.file import FILE_VARIABLE


class Part(StrEnum):
    """What there is to run; a deployment has one of each."""

    CODE = "code"
    WEBSERVER = "webserver"
    DAEMON = "daemon"


_PORTS = {Part.CODE: 4000, Part.WEBSERVER: 3000}
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

    The code server holds the definitions, and runs are carried out below it. Webserver and
    daemon find it by $DATALAKE_CODE_SERVER (host:port); without that variable each loads the
    definitions by itself. Runs and events are kept in Postgres if $DAGSTER_PG_URL says where.

    \b
    Examples:
      datalake serve code --host 0.0.0.0
      datalake serve webserver --host 0.0.0.0
      datalake serve daemon
    """
    chosen = invocation(context)
    settings = chosen.settings()
    ensure_home(settings)
    environ = {**os.environ, FILE_VARIABLE: str(chosen.file())}
    command = _command(part, host, port or _PORTS.get(part, 0), environ)
    exec_module(command, environ)


def _command(part: Part, host: str, port: int, environ: dict[str, str]) -> list[str]:
    listening = ["-h", host, "-p", str(port)]
    if part is Part.CODE:
        code = ["-m", "datalake_assets.definitions", "--location-name", "datalake"]
        return ["dagster", "code-server", "start", *code, *listening]
    workspace = ["-w", str(_workspace(environ))]
    if part is Part.WEBSERVER:
        return ["dagster_webserver", *workspace, *listening]
    return ["dagster._daemon", "run", *workspace]


def _workspace(environ: dict[str, str]) -> Path:
    """Where the definitions are: in the code server, or in the process itself."""
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
    # Dagster reads both from the environment, each by itself.
    environ |= {"DATALAKE_CODE_HOST": host, "DATALAKE_CODE_PORT": port}
    return folder / "workspace_served.yaml"


def exec_module(module: Sequence[str], environ: Mapping[str, str]) -> NoReturn:
    """Replace this process with a Python module: signals and the exit code are those of it."""
    # Background jobs of a script ignore SIGINT, and Dagster handles SIGTERM like SIGINT: only
    # `kill -9` would stop it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execve(sys.executable, [sys.executable, "-m", *module], dict(environ))
