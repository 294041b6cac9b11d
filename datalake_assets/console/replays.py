"""Replays and dry runs from the console: `datalake replay` as a process, which Dagster shows."""

import atexit
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import uuid4

import msgspec

from eventlake.rules.clock import now
from eventlake.rules.errors import UsageError

_KEPT = 20
_SHOWN = 4_000  # characters of the output


@dataclass(frozen=True)
class Job:
    """A replay or dry run that was started here."""

    id: str
    words: tuple[str, ...]
    user: str
    source: str
    dry_run: bool
    started: datetime
    process: "subprocess.Popen[bytes]"
    folder: Path  # of what it prints

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    @property
    def failed(self) -> bool:
        return bool(self.process.poll())

    @property
    def command(self) -> str:
        return " ".join(("datalake", *self.words))

    def output(self) -> str:
        """The end of what it has reported so far."""
        return (self.folder / "err").read_text(errors="replace")[-_SHOWN:].strip()

    def answer(self) -> Any:
        """What `--json` printed; None while it runs, or if it failed."""
        if self.running or self.failed:
            return None
        return msgspec.json.decode((self.folder / "out").read_bytes() or b"null")


@dataclass
class Replays:
    """The jobs of this console; one at a time, as each starts an engine."""

    config: Path = Path("lake.yaml")
    jobs: dict[str, Job] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def start(self, words: Sequence[str], user: str, source: str, dry_run: bool) -> Job:
        with self._lock:
            if any(job.running for job in self.jobs.values()):
                raise UsageError("A replay of this console is running. Wait until it has ended.")
            process, folder = self._process(words)
            id = uuid4().hex[:12]
            job = Job(id, tuple(words), user, source, dry_run, now(), process, folder)
            self.jobs[id] = job
            for old in list(self.jobs)[:-_KEPT]:
                shutil.rmtree(self.jobs.pop(old).folder, ignore_errors=True)
            return job

    def _process(self, words: Sequence[str]) -> "tuple[subprocess.Popen[bytes], Path]":
        folder = Path(tempfile.mkdtemp(prefix="datalake-console-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
            process = subprocess.Popen(
                [sys.executable, "-m", "datalake_assets.cli", "--config", str(self.config), *words],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,  # it goes on if the console stops
            )
        return process, folder
