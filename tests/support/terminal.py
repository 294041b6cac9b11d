"""The command line as a test types it, in this process or as a program of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from datalake_assets.cli import main
from tests.support.repo import ROOT


@dataclass(frozen=True)
class Said:
    """How a command ended, and its words on both streams."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout; fails where there is anything else."""
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        """The cells of a printed table below its head; columns are two spaces apart."""
        below = self.out.split("─\n", 1)[1]
        return [[c.strip() for c in line.split("  ") if c.strip()] for line in below.splitlines()]


@dataclass
class Terminal:
    """Types commands in the folder that the test is in."""

    captured: pytest.CaptureFixture[str]

    def run(self, *words: str | Path) -> Said:
        self.captured.readouterr()
        code = main([str(word) for word in words])
        said = self.captured.readouterr()
        return Said(code, said.out, said.err)


def program(
    *words: str | Path, cwd: Path, env: Mapping[str, str] | None = None, stdin: str = ""
) -> Said:
    """The same as a process, as users have it."""
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("DATALAKE", "DAGSTER"))}
    done = subprocess.run(
        [sys.executable, "-m", "datalake_assets.cli", *map(str, words)],
        cwd=cwd,
        env={**inherited, "PYTHONPATH": path, **(env or {})},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    return Said(done.returncode, done.stdout, done.stderr)


def everything_below(folder: Path) -> dict[str, bytes]:
    """Every file with its content, to see that nothing was written."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
