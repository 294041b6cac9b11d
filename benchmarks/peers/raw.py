"""What all peers are told, and the name rule: standard library alone."""

import re
import sys
from hashlib import sha256
from pathlib import Path

_WORDS = re.compile(r"[A-Z0-9]+[a-z0-9]*|[a-z0-9]+")


def arguments() -> tuple[list[Path], Path]:
    """The raw files, oldest first, and the folder to make the tables in."""
    raw, out = map(Path, sys.argv[1:3])
    return sorted(raw.rglob("*.gz")), out


def snake(name: str) -> str:
    words = _WORDS.findall(name)
    return "_".join(words).lower() or f"x_{sha256(name.encode()).hexdigest()[:8]}"


def table_name(kind: str, event: str | None) -> str:
    return f"track_{snake(event)}" if kind == "track" and event else kind
