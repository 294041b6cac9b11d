"""`datalake dev`: the Dagster UI over the lake."""

import os
import socket
from pathlib import Path
from typing import Annotated

import typer

from datalake_assets.cli.invocation import Invocation, invocation
from datalake_assets.cli.output import note, say, warn
from datalake_assets.cli.serve import exec_module
from datalake_assets.instance.home import claim, ensure_home, leave_home
from datalake_assets.jobs.sync import SCHEDULES_VARIABLE
from datalake_assets.sensors.reload import WEBSERVER_VARIABLE
from eventlake.rules.errors import LakeError, UsageError
from eventlake.settings.file import FILE_VARIABLE
from spark_resources.engines.java import require_java

DEMO = Path("demo/lake.yaml")
"""Where the demo has its settings, unless told otherwise."""
_HIGHEST_PORT = 65_535


def dev(
    context: typer.Context,
    port: Annotated[int, typer.Option(min=1, max=_HIGHEST_PORT, help="Port of the UI.")] = 3000,
    host: Annotated[str, typer.Option(help="Address of the UI.")] = "127.0.0.1",
    schedules: Annotated[
        bool, typer.Option("--schedules", help="Switch all schedules on.")
    ] = False,
) -> None:
    """Start the Dagster UI and its daemon for the lake; Ctrl-C stops them.

    Without settings of your own it shows the demo's lake, if there is one in ./demo.

    \b
    Examples:
      datalake dev
      datalake dev --port 4000 --schedules
    """
    chosen = _or_demo(invocation(context))
    settings = chosen.settings()
    _require_free(host, port)
    if settings.engine != "emr":
        _warn_without_java()
    home = ensure_home(settings)
    if not claim(home):
        warn(f"another UI runs on {home} already; both will show the same runs")
    environ = {
        **os.environ,
        FILE_VARIABLE: str(chosen.file()),
        WEBSERVER_VARIABLE: f"{host}:{port}",
        SCHEDULES_VARIABLE: "on" if schedules else "off",
    }
    workspace = Path(__file__).parent.with_name("workspace.yaml")
    say(f"The UI will be at http://{host}:{port} in some seconds; Ctrl-C ends it.", style="bold")
    exec_module(["dagster", "dev", "-w", str(workspace), "-h", host, "-p", str(port)], environ)


def _or_demo(asked: Invocation) -> Invocation:
    named = asked.config is not None or os.environ.get(FILE_VARIABLE)
    if named or asked.file().exists() or not DEMO.exists():
        return asked
    note(f"No {asked.file().name} here; showing the demo: {DEMO}")
    leave_home()  # the demo keeps its runs to itself
    return Invocation(DEMO)


def _require_free(host: str, port: int) -> None:
    """Refuse a port that cannot be had, before anything is started or written."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            # As the web server itself does, so that a port it left a moment ago is free.
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
