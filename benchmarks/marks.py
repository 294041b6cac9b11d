"""Moments that a measured program tells: standard library alone, since peers import it, too."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

MARKS_VARIABLE = "BENCHMARK_MARKS"


@dataclass(slots=True)
class Marks:
    """Monotonic seconds, which all processes of a machine share; seconds by step."""

    ready: float = 0
    steps: dict[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "Marks":
        return cls(**json.loads(path.read_text())) if path.exists() else cls()

    def is_ready(self) -> None:
        """Everything is imported and started; now the first raw file is read."""
        self.ready = time.monotonic()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.steps[name] = time.monotonic() - began

    def write(self) -> None:
        if path := os.environ.get(MARKS_VARIABLE):
            Path(path).write_text(json.dumps(asdict(self)))
