"""Where words go: answers to stdout, talk to stderr, and nothing in them is taken for markup."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from datalake_assets.cli.text import plain

# A pipe has no width: what reads from it cuts lines as it likes.
_UNLIMITED = 100_000
_GAP = 2


def out() -> Console:
    """For answers. Made anew each time, since tests and shells exchange the streams."""
    return _console(stderr=False)


def err() -> Console:
    """For everything that is not the answer: progress, warnings, errors."""
    return _console(stderr=True)


def _console(stderr: bool) -> Console:
    console = Console(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = _UNLIMITED
    return console


def say(message: str, style: str | None = None) -> None:
    """A line of the answer."""
    out().print(message, style=style, soft_wrap=True)


def note(message: str, style: str | None = "dim") -> None:
    """A line about the work, apart from the answer."""
    err().print(message, style=style, soft_wrap=True)


def warn(message: str) -> None:
    err().print(Text.assemble(("warning: ", "yellow"), message), soft_wrap=True)


def fail(message: str) -> None:
    err().print(Text.assemble(("error: ", "bold red"), message), soft_wrap=True)


def print_json(value: Any) -> None:
    """The one document that `--json` promises; numbers keep all their digits."""
    encoded = msgspec.json.Encoder(decimal_format="number").encode(value)
    sys.stdout.write(msgspec.json.format(encoded, indent=2).decode() + "\n")


def grid(
    rows: Sequence[Sequence[object]],
    left: Sequence[str] = (),
    right: Sequence[str] = (),
    spare: Sequence[str] = (),
) -> Table:
    """A table of text columns, then numbers; where it is too wide, spare columns go, in order."""
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


def show(table: Table) -> None:
    out().print(table)


@contextmanager
def working(label: str) -> Iterator[None]:
    """A sign of life on a terminal; elsewhere nothing."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    console = err()
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as progress:
        progress.add_task(label)
        try:
            yield
        except KeyboardInterrupt:
            fail("interrupted; what was published stays, the next run goes on from there")
            raise
