"""`datalake console`: web pages over the lake alone, beside Dagster's UI."""

import os
from typing import Annotated

import typer

from datalake_assets.cli.dev import exec_module, or_demo, require_free
from datalake_assets.cli.invocation import invocation
from datalake_assets.cli.output import say
from datalake_assets.console.access import Access
from eventlake.settings.file import FILE_VARIABLE

CONSOLE = "datalake_assets.console"


def console(
    context: typer.Context,
    port: Annotated[int, typer.Option(min=1, max=65_535, help="Port of the console.")] = 3001,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
) -> None:
    """Open the console: every sync, every table and every record, as web pages.

    On this machine it needs no login. At any other address it needs $DATALAKE_CONSOLE_TOKEN, or a
    proxy that names the user (docs/console.md). $DATALAKE_DAGSTER_URL links its pages to Dagster.

    \b
    Examples:
      datalake console
      datalake console --port 8080
    """
    chosen = or_demo(invocation(context))
    chosen.settings()
    Access.of(host, os.environ)
    require_free(host, port)
    say(f"The console is at http://{host}:{port}; Ctrl-C stops it.", style="bold")
    environ = {**os.environ, FILE_VARIABLE: str(chosen.file())}
    exec_module([CONSOLE, host, str(port)], environ)
