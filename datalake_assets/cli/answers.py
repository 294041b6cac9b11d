"""The rows of a query as a person or a program reads them."""

import csv
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
import pyarrow as pa
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from datalake_assets.cli.output import grid, note, out
from datalake_assets.cli.text import plain, plural

_NULL = Text("null", style="dim")
_GAP = 2


def unique_names(answer: pa.Table) -> pa.Table:
    """The same columns; one whose name another has already gets a number: `a`, `a_1`."""
    taken = set(answer.column_names)
    names: list[str] = []
    for name in answer.column_names:
        new, number = name, 0
        while new in names or (number and new in taken):
            number += 1
            new = f"{name}_{number}"
        names.append(new)
    return answer.rename_columns(names)


def print_csv(answer: pa.Table) -> None:
    """Names first, nulls empty, nested values as JSON."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(answer.column_names)
    for row in _rows(answer):
        writer.writerow(["" if value is None else shown(value) for value in row])


def show_answer(answer: pa.Table, limit: int) -> None:
    """A table, or, where it is wider than the terminal, one row below the other."""
    console = out()
    first = answer.slice(0, limit) if limit else answer
    rows = [[_NULL if v is None else plain(shown(v)) for v in row] for row in _rows(first)]
    if _width(answer.column_names, rows) <= console.width:
        numbers = [_is_number(field.type) for field in answer.schema]
        table = grid(rows, left=answer.column_names)
        for column, right in zip(table.columns, numbers, strict=True):
            column.justify, column.no_wrap = "right" if right else "left", True
        console.print(table)
    else:
        _show_records(console, answer.column_names, rows)
    hidden = answer.num_rows - first.num_rows
    if hidden:
        note(f"… and {plural(hidden, 'more row')}; --rows 0 shows all, --csv and --json print all")
    elif not answer.num_rows:
        note("no rows")


def shown(value: Any) -> str:
    """A value as text: times without zone (all are UTC), nested ones as JSON."""
    if isinstance(value, datetime):
        precision = "microseconds" if value.microsecond % 1000 else "milliseconds"
        return value.replace(tzinfo=None).isoformat(" ", precision)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | dict):
        return msgspec.json.Encoder(decimal_format="number").encode(value).decode()
    return str(value)


def _rows(answer: pa.Table) -> Iterator[tuple[Any, ...]]:
    columns = [column.to_pylist(maps_as_pydicts="strict") for column in answer.columns]
    return zip(*columns, strict=True)


def _width(names: list[str], rows: list[list[Any]]) -> int:
    cells = [names, *rows]
    return sum(max(cell_len(str(row[n])) for row in cells) + _GAP for n in range(len(names)))


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind)
    )


def _show_records(console: Console, names: list[str], rows: list[list[Any]]) -> None:
    widest = max(map(cell_len, names))
    for number, row in enumerate(rows, 1):
        console.rule(f"row {number}", align="left", style="dim")
        for name, value in zip(names, row, strict=True):
            line = Text.assemble((f"{set_cell_size(name, widest)}  ", "bold"), value)
            console.print(line, soft_wrap=True)
