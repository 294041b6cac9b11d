"""Output: answers on stdout, everything else on stderr; text is never interpreted as markup."""

import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import pyarrow as pa
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from eventlake.rules import text
from eventlake.rules.text import headline as headline
from eventlake.rules.text import moment as moment
from eventlake.rules.text import number as number
from eventlake.rules.text import plain, plain_lines, plural
from eventlake.rules.text import shown as shown
from eventlake.rules.text import span as span


def size(count: int | None) -> str:
    return number(None) if count is None else text.size(count)


# A pipe has no width: lines are not wrapped.
_UNLIMITED = 100_000
_GAP = 2


def out() -> Console:
    """For answers. Created for each call, because tests and shells replace the streams."""
    return _console(stderr=False)


def err() -> Console:
    """For everything else: progress, warnings, errors."""
    return _console(stderr=True)


def _console(stderr: bool) -> Console:
    console = Console(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = _UNLIMITED
    return console


def say(message: str, style: str | None = None) -> None:
    """A line of the answer."""
    out().print(plain_lines(message), style=style, soft_wrap=True)


def note(message: str, style: str | None = "dim") -> None:
    """A line besides the answer."""
    err().print(plain_lines(message), style=style, soft_wrap=True)


def warn(message: str) -> None:
    err().print(Text.assemble(("warning: ", "yellow"), plain_lines(message)), soft_wrap=True)


def fail(message: str) -> None:
    err().print(Text.assemble(("error: ", "bold red"), plain_lines(message)), soft_wrap=True)


def print_json(value: Any) -> None:
    """Print one JSON document; numbers keep all their digits."""
    encoded = msgspec.json.Encoder(decimal_format="number").encode(value)
    sys.stdout.write(msgspec.json.format(encoded, indent=2).decode() + "\n")


def grid(
    rows: Sequence[Sequence[object]],
    left: Sequence[str] = (),
    right: Sequence[str] = (),
    spare: Sequence[str] = (),
) -> Table:
    """A table of text columns, then numbers; if too wide, it drops spare columns in their order."""
    names = [*left, *right]
    columns = [
        [cell if isinstance(cell, Text) else Text(plain(cell)) for cell in column]
        for column in zip(*rows, strict=True)
    ] or [[] for _ in names]
    widths = {
        name: max(cell_len(name), *(cell.cell_len for cell in column), 0) + _GAP
        for name, column in zip(names, columns, strict=True)
    }
    gone: set[str] = set()
    for name in spare:
        if sum(width for kept, width in widths.items() if kept not in gone) > out().width:
            gone.add(name)
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, pad_edge=False)
    for name in names:
        if name in gone:
            continue
        if name in right:
            table.add_column(plain(name), justify="right", no_wrap=True)
        else:
            table.add_column(plain(name), overflow="fold")
    kept = [column for name, column in zip(names, columns, strict=True) if name not in gone]
    for cells in zip(*kept, strict=True):
        table.add_row(*cells)
    return table


def not_loaded(counted: Iterable[object]) -> tuple[str, ...]:
    """The columns of what became of rows that were not loaded; rare ones only if there are any."""
    counted = list(counted)
    rare = ("suppressed", "skipped")
    return "duplicates", "rejected", *(n for n in rare if any(getattr(o, n, 0) for o in counted))


def show(table: Table) -> None:
    out().print(table)


@contextmanager
def working(label: str) -> Iterator[None]:
    """A spinner on a terminal, nothing elsewhere."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    console = err()
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as progress:
        progress.add_task(label)
        try:
            yield
        except KeyboardInterrupt:
            fail("interrupted; what was published stays, the next run continues from there")
            raise


_NULL = Text("null", style="dim")
_COLUMN_GAP = 2


def unique_names(answer: pa.Table) -> pa.Table:
    """The same columns with unique names: `a`, `a_1`."""
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
    """Print CSV with a header; nulls are empty, nested values JSON."""
    from eventlake.records.logs import without_formulas

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(answer.column_names)
    for row in _rows(without_formulas(answer)):
        writer.writerow(["" if value is None else shown(value) for value in row])


def show_answer(answer: pa.Table, limit: int) -> None:
    """Show a table, or, if it is wider than the terminal, one row below the other."""
    console = out()
    if answer.column_names == ["explain_key", "explain_value"]:  # a drawing of several lines
        for drawing in answer["explain_value"].to_pylist():
            say(drawing)
        return
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


def _rows(answer: pa.Table) -> Iterator[tuple[Any, ...]]:
    columns = [column.to_pylist(maps_as_pydicts="strict") for column in answer.columns]
    return zip(*columns, strict=True)


def _width(names: list[str], rows: list[list[Any]]) -> int:
    cells = [names, *rows]
    return sum(max(cell_len(str(row[n])) for row in cells) + _COLUMN_GAP for n in range(len(names)))


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind)
    )


def _show_records(console: Console, names: list[str], rows: list[list[Any]]) -> None:
    widest = max(map(cell_len, names))
    for place, row in enumerate(rows, 1):
        console.rule(f"row {place}", align="left", style="dim")
        for name, value in zip(names, row, strict=True):
            line = Text.assemble((f"{set_cell_size(name, widest)}  ", "bold"), value)
            console.print(line, soft_wrap=True)
