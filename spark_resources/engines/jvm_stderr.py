"""What the JVM writes to standard error, less the greeting that no option of it turns off."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

# Spark asks for this module on every start, and Java warns of it before any log is set up.
_GREETING = b"WARNING: Using incubator modules"


@contextmanager
def without_greeting() -> Iterator[None]:
    """A JVM that is started inside has its words passed on, line by line, as long as it lives."""
    sys.stderr.flush()
    terminal = os.dup(2)
    heard, written = os.pipe()
    os.dup2(written, 2)
    os.close(written)
    Thread(target=_pass_on, args=(heard, terminal), name="JVM words", daemon=True).start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(terminal, 2)


def _pass_on(heard: int, terminal: int) -> None:
    """Ends when nobody holds the other end any more."""
    with os.fdopen(heard, "rb") as lines, os.fdopen(terminal, "wb", buffering=0) as out:
        for line in lines:
            if not line.startswith(_GREETING):
                out.write(line)
