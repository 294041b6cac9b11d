"""The command line `datalake`: a module for each command, which loads what it needs when run."""

from datalake_assets.cli.app import main

__all__ = ["main"]
