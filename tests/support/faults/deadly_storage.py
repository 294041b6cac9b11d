"""A store whose users lose their machines; it comes to workers, and needs little there."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eventlake.storage import LocalStorage


@dataclass(frozen=True)
class Deadly(LocalStorage):
    """The first task that reads a raw file takes its machine with it, and so does the first that
    writes one of a table."""

    driver: int = 0

    def open_stream(self, path: str) -> Any:
        self._perhaps("reading")
        return super().open_stream(path)

    def open_output(self, path: str) -> Any:
        if "segment_type=" in path:
            self._perhaps("writing")
        return super().open_output(path)

    def put_own(self, path: str, data: bytes | memoryview) -> None:
        self._perhaps("writing")
        super().put_own(path, data)

    def _perhaps(self, doing: str) -> None:
        if os.getpid() == self.driver:
            return
        try:
            os.close(os.open(f"{self.uri}/{doing}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        executor = _parent(os.getppid())  # between them is the daemon that forks Python workers
        os.kill(_parent(executor), signal.SIGKILL)
        os.kill(executor, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
