"""The program `datalake`: its commands, global options and exit codes."""

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

COMMANDS = {
    "init": "Write a commented lake.yaml to start from.",
    "check": "Check settings, access and engine; say what to fix and why data may be missing.",
    "sync": "Load every raw file that is not in the lake yet.",
    "replay": "Load a past range again from the raw archive and replace its rows, day by day.",
    "status": "Show the state of every source: last sync, lag, waiting files, failures, runs.",
    "alerts": "Show open problems and sent messages; or send a test message to the recipients.",
    "reports": "Show what syncs and replays did, newest first.",
    "records": "Show the outcome of each record of a run: loaded, duplicate or rejected, and why.",
    "find": "Find an event: its lines in the archive, the runs that read it, and where it is now.",
    "audit": "Read the raw archive again and check that every event is in the lake exactly once.",
    "tables": "List databases and tables; with DB.TABLE, the columns of a table.",
    "sql": "Query the lake in SQL (DuckDB dialect). Times and days are UTC.",
    "retype": "Show the effect of another type for a column, then request it.",
    "recover": "Finish the commits of crashed runs, write their reports, remove their leftovers.",
    "upkeep": "Compact small files and remove what is no longer needed.",
    "demo": "Create a complete lake from sample data: two sources, two days, two syncs each.",
    "dev": "Start the Dagster UI and its daemon for the lake; Ctrl-C stops them.",
    "console": "Open the console: every sync, every table and every record, as web pages.",
    "serve": "Run one Dagster process, for containers and process managers; it stops on SIGTERM.",
    "suppress": "Manage people whose events are not loaded: lists by userId and anonymousId.",
    "aws": "Set up what the lake needs on AWS (docs/aws.md).",
}
"""The first line of help of each command, in the order of `--help`."""
_MODULES = {"replay": "sync", "serve": "dev"}
"""The modules of commands that share one; of all others, the module has the command's name."""


def load(name: str) -> Any:
    """Import a command or a group of commands."""
    found = getattr(import_module(f"datalake_assets.cli.{_MODULES.get(name, name)}"), name)
    if not isinstance(found, typer.Typer):
        single = typer.Typer(add_completion=False)
        single.command(name)(found)
        found = single
    command = typer.main.get_command(found)
    command.name = name
    return command


class LazyCommands(TyperGroup):
    """Imports a command only when it runs. `--help` lists the commands from the table."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, listed, rest = super().resolve_command(ctx, args)
        return name, load(name) if name else listed, rest


app = typer.Typer(
    name="datalake",
    cls=LazyCommands,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    pretty_exceptions_enable=False,
)

_FLAGS = ("--debug",)
_WITH_VALUE = ("--config",)


@app.callback()
def options(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(help="The settings. Default: $DATALAKE_CONFIG, else ./lake.yaml."),
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the stack trace of an error.")
    ] = False,
) -> None:
    """A data lake from raw event archives: typed tables, a catalog, sync reports, SQL.

    New here? [bold]datalake demo[/bold] creates a complete lake from sample data.
    """
    context.obj = config


for _name, _help in COMMANDS.items():
    app.command(_name, help=_help)(lambda: None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line. Exit codes: 0 done, 1 the run failed, 2 wrong usage or settings."""
    words = globals_first(sys.argv[1:] if arguments is None else arguments)
    try:
        typer.main.get_command(app)(args=words, prog_name="datalake")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except Exception as error:
        if "--debug" in words:
            raise
        return _ended_by(error)
    return 0


def _ended_by(error: Exception) -> int:
    from datalake_assets.cli.output import fail
    from eventlake.clouds import as_lake_error

    if known := as_lake_error(error):
        fail(str(known))
        return known.exit_code
    what = " ".join(f"{type(error).__name__}: {error}".split())
    fail(f"internal error: {what} (run with --debug for the stack trace)")
    return 1


def globals_first(arguments: Sequence[str]) -> list[str]:
    """Move the global options before the command, wherever they are on the command line."""
    first: list[str] = []
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            rest += [word, *words]
        elif word in _FLAGS or word.startswith(tuple(f"{name}=" for name in _WITH_VALUE)):
            first.append(word)
        elif word in _WITH_VALUE:
            first += [word, *([value] if (value := next(words, None)) is not None else [])]
        else:
            rest.append(word)
    return first + rest
