"""Replays and dry runs from the console: `datalake replay` as a process, which Dagster shows."""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import IO, Any
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
    out: IO[bytes]
    err: IO[bytes]

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
        return Path(self.err.name).read_text(errors="replace")[-_SHOWN:].strip()

    def answer(self) -> Any:
        """What `--json` printed; None while it runs, or if it failed."""
        if self.running or self.failed:
            return None
        return msgspec.json.decode(Path(self.out.name).read_bytes() or b"null")


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
            # Kept open by the job: the files are gone once it is forgotten.
            out, err = (tempfile.NamedTemporaryFile() for _ in range(2))  # noqa: SIM115
            process = subprocess.Popen(
                [sys.executable, "-m", "datalake_assets.cli", "--config", str(self.config), *words],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,  # it goes on if the console stops
            )
            job = Job(
                uuid4().hex[:12], tuple(words), user, source, dry_run, now(), process, out, err
            )
            self.jobs[job.id] = job
            for old in list(self.jobs)[:-_KEPT]:
                del self.jobs[old]
            return job
