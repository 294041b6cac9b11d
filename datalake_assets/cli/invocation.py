"""What every command gets: which settings to use, and the way to the lake."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from eventlake.lake import Lake
    from eventlake.settings.models import Settings


@dataclass(frozen=True, slots=True)
class Invocation:
    """The options that stand before the command; reading the settings waits until it asks."""

    config: Path | None = None

    def file(self) -> Path:
        """Where the settings are, or would be."""
        from eventlake.settings.file import find_settings

        return find_settings(self.config, os.environ, Path.cwd())

    def settings(self) -> "Settings":
        from eventlake.settings.file import load_settings

        return load_settings(self.config, os.environ, Path.cwd())

    def lake(self) -> "Lake":
        from eventlake.lake import Lake

        return Lake.open(self.settings())


def invocation(context: typer.Context) -> Invocation:
    found = context.find_object(Invocation)
    return found or Invocation()
