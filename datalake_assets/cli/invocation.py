"""Shared by commands: the settings, the lake, common options."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eventlake.lake import Lake
from eventlake.settings.file import find_settings, load_settings
from eventlake.settings.models import Settings, Source

if TYPE_CHECKING:
    from eventlake.api import EventLake

FROM = typer.Option("--from", metavar="T", help="First hour (UTC).")
TO = typer.Option("--to", metavar="T", help="Hour after the last one.")

SourceOption = Annotated[
    str | None, typer.Option("--source", help="Slug or id. Default: all sources.")
]
RequiredSource = Annotated[str, typer.Option("--source", help="Slug or id.")]
From = Annotated[str | None, FROM]
To = Annotated[str | None, TO]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change; change nothing.")]


@dataclass(frozen=True, slots=True)
class Invocation:
    """The options of the program. Settings are read when a command needs them."""

    config: Path | None = None

    def file(self) -> Path:
        """The path of the settings file, which may not exist."""
        return find_settings(self.config, os.environ, Path.cwd())

    def settings(self) -> Settings:
        return load_settings(self.config, os.environ, Path.cwd())

    def lake(self) -> Lake:
        return Lake.open(self.settings())

    def my(self) -> "EventLake":
        """The lake as Python's API has it."""
        from eventlake.api import EventLake

        return EventLake(self.lake())


def invocation(context: typer.Context) -> Invocation:
    return Invocation(context.find_root().obj)


def chosen_sources(lake: Lake, source: str | None) -> tuple[Source, ...]:
    """The source of `--source`, or all sources."""
    return lake.settings.sources if source is None else (lake.settings.source(source),)
