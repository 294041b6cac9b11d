"""`datalake sql`: queries the lake."""

import sys
from typing import Annotated

import pyarrow as pa
import typer

from datalake_assets.cli.invocation import invocation
from datalake_assets.cli.output import print_csv, print_json, show_answer, unique_names
from eventlake.rules.errors import UsageError


def sql(
    context: typer.Context,
    words: Annotated[
        list[str], typer.Argument(metavar="SQL", help="One statement; - reads stdin.")
    ],
    rows: Annotated[int, typer.Option(min=0, help="Maximum number of rows to show; 0: all.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print all rows as JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print all rows as CSV.")] = False,
) -> None:
    """Query the lake in SQL (DuckDB dialect). Times and days are UTC.

    \b
    Examples:
      datalake sql "SELECT count(*) FROM ios_prod.screen"
      datalake sql "SELECT * FROM __segment_datalake.sync_reports" --json
      datalake sql --csv - < question.sql > answer.csv
    """
    if as_json and as_csv:
        raise UsageError("--json and --csv exclude each other: choose one.")
    text = sys.stdin.read() if words == ["-"] else " ".join(words)
    try:
        answer: pa.Table = invocation(context).my().sql(text)
    except UsageError as error:
        if len(words) == 1:
            raise
        raise UsageError(
            f"{error}\nThe statement was not in quotes, so the shell may have changed it (it "
            'replaces a * by names of files). Put it in quotes: datalake sql "SELECT * FROM …"'
        ) from None
    if as_json:
        print_json(unique_names(answer).to_pylist(maps_as_pydicts="strict"))
    elif as_csv:
        print_csv(answer)
    else:
        show_answer(answer, rows)
