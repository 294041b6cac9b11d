"""The command line as users type it: in this process, or as a program of its own."""

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datalake_assets.cli import main
from tests.support.repo import ROOT


@dataclass(frozen=True)
class Result:
    """The output of a command on both streams."""

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


def datalake(*words: str | Path, code: int = 0) -> Result:
    """Run a command in this process and in the current folder; it must end with the exit code."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        ended = main([str(word) for word in words])
    assert ended == code, f"{words} ended with {ended}\n{out.getvalue()}\n{err.getvalue()}"
    return Result(out.getvalue(), err.getvalue())


def program(*words: str | Path, cwd: Path, code: int = 0, stdin: str = "") -> Result:
    """The same as a process of its own."""
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("DATALAKE", "DAGSTER"))}
    done = subprocess.run(
        [sys.executable, "-m", "datalake_assets.cli", *map(str, words)],
        cwd=cwd,
        env={**inherited, "PYTHONPATH": path},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, f"{words} ended with {done.returncode}\n{done.stderr}"
    return Result(done.stdout, done.stderr)


def everything_below(folder: Path) -> dict[str, bytes]:
    """Every file with its content, to see that nothing was written."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def signs(result: Result) -> dict[str, str]:
    """What `datalake check` looked at, and its sign."""
    return {line.split("  ")[1].strip(): line[0] for line in result.out.splitlines()}
