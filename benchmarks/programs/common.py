"""What the measured programs share. Standard library only: dlt runs in its own environment."""

import json
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path

MARKS_VARIABLE = "BENCHMARK_MARKS"
TIMES = ("receivedAt", "sentAt", "timestamp", "originalTimestamp")
_WORDS = re.compile(r"[A-Z0-9]+[a-z0-9]*|[a-z0-9]+")


@dataclass(slots=True)
class Marks:
    """Timestamps of a program on the monotonic clock, which all processes of a machine share."""

    ready: float = 0
    steps: dict[str, float] = field(default_factory=dict)  # duration in seconds

    @classmethod
    def read(cls, path: Path) -> "Marks":
        return cls(**json.loads(path.read_text())) if path.exists() else cls()

    def set_ready(self) -> None:
        """Call when start-up is complete, before reading the first raw file."""
        self.ready = time.monotonic()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.steps[name] = time.monotonic() - began

    def write(self) -> None:
        """Write to the file that the benchmark reads after the program has ended."""
        if path := os.environ.get(MARKS_VARIABLE):
            Path(path).write_text(json.dumps(asdict(self)))


def peer_arguments() -> tuple[list[Path], Path]:
    """The raw files, oldest first, and the folder for the tables."""
    raw, out = map(Path, sys.argv[1:3])
    return sorted(raw.rglob("*.gz")), out


def snake(name: str) -> str:
    words = _WORDS.findall(name)
    return "_".join(words).lower() or f"x_{sha256(name.encode()).hexdigest()[:8]}"


def table_name(kind: str, event: str | None) -> str:
    return f"track_{snake(event or '')}" if kind == "track" else kind
