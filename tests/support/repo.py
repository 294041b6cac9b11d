"""The repository, servers on free ports, and the count of injected faults."""

import re
import signal
import socket
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port at which nothing answers and that no other process is given until the block ends.

    A server that is told to use this very port can: servers set SO_REUSEADDR, as this socket does,
    and Linux then refuses a port only if another socket listens on it. Other systems refuse it in
    any case, so there the port is only likely to stay free.
    """
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        port: int = reserved.getsockname()[1]
        if sys.platform != "linux":
            reserved.close()
        yield port


def page_at(url: str, seconds: float) -> str:
    """The page of a server, which may have to start first."""
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                text: str = answer.read().decode()
                return text
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


def heed_signals() -> None:
    """Run in a new process: one that a shell starts in the background ignores Ctrl-C, and Dagster
    gives SIGTERM the handler of Ctrl-C. Both are inherited."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


injected: Counter[str] = Counter()


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of one language, without the indentation of lists."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    return [re.sub(rf"^{indent}", "", body, flags=re.MULTILINE) for indent, body in found]
