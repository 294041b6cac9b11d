"""The program: its commands, what stands before them, and how it ends."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from datalake_assets.cli import (
    alerts,
    audit,
    aws,
    check,
    demo,
    dev,
    find,
    init,
    records,
    recover,
    replay,
    reports,
    retype,
    serve,
    sql,
    status,
    suppress,
    sync,
    tables,
    upkeep,
)
from datalake_assets.cli.invocation import Invocation

app = typer.Typer(
    name="datalake",
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

    New here? [bold]datalake demo[/bold] makes a whole lake from sample data.
    """
    context.obj = Invocation(config)


for command in (
    init.init,
    check.check,
    sync.sync,
    replay.replay,
    status.status,
    alerts.alerts,
    reports.reports,
    records.records,
    find.find,
    audit.audit,
    tables.tables,
    sql.sql,
    retype.retype,
    recover.recover,
    upkeep.upkeep,
    demo.demo,
    dev.dev,
    serve.serve,
):
    app.command()(command)
app.add_typer(suppress.suppress, name="suppress")
app.add_typer(aws.aws, name="aws")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and say how it went: 0 done, 1 the run failed, 2 wrong use or settings."""
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
    from eventlake.aws.refusals import as_lake_error

    if known := as_lake_error(error):
        fail(str(known))
        return known.exit_code
    what = " ".join(f"{type(error).__name__}: {error}".split())
    fail(f"internal error: {what} (run with --debug for the stack trace)")
    return 1


def globals_first(arguments: Sequence[str]) -> list[str]:
    """The same words with the options of the program before the command, wherever they stood."""
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
