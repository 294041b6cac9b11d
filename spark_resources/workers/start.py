"""How Spark's Python workers begin on a cluster: with our code in a place that outlives the run.

Spark brings the code as a zip file, to each executor and for each run anew. From there the kernel
would be compiled by every worker, for ten seconds each time; from a folder that stays, by one
worker of a machine, once. Until that is settled, there is Python's own library only.
"""

import fcntl
import hashlib
import os
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CODE = "datalake.zip"
LOOKING = "DATALAKE_LOOKING"
"""Set where workers are only looked at: they may have no packages yet."""


def main() -> None:
    from pyspark import daemon

    if os.environ.get(LOOKING):
        daemon.manager()
        return
    begin(Path(CODE))
    daemon.manager()


def begin(archive: Path) -> None:
    """Import all that workers need; machine code is made by one of them, the others wait for it."""
    folder = unpacked(archive)
    sys.path.insert(0, str(folder))
    with _alone(folder):
        from spark_resources.workers.preload import get_ready

        get_ready()


def unpacked(archive: Path) -> Path:
    """The folder of this very code, made by the first that needs it on this machine."""
    version = hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"datalake-{os.getuid()}" / f"code-{version}"
    folder.parent.mkdir(mode=0o700, exist_ok=True)
    with _alone(folder):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent) as aside:
                with zipfile.ZipFile(archive) as code:
                    code.extractall(f"{aside}/code")
                os.rename(f"{aside}/code", folder)
    return folder


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """The system frees the lock when its holder dies."""
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    main()
