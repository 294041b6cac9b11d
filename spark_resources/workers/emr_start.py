"""The first thing a step on EMR runs: brings the shipped packages to the driver, then begins.

Spark brings our own code (`--py-files`) to the driver and unpacked packages (`--archives`) to its
executors, but packages with compiled parts not to a driver in client mode. Until they are here,
this file has Python's own library only.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path


def main(arguments: list[str]) -> int:
    """`emr_start.py ENVIRONMENT …`: where the packages lie, and what is for the job itself."""
    sys.path.insert(0, str(unpacked(arguments[0])))
    from spark_resources.workers.emr_main import main as run

    return run(arguments[1:])


def unpacked(environment: str) -> Path:
    """The folder of the packages: of each version fetched once per machine, by one of all steps."""
    version = environment.split("/")[-2]
    folder = Path(tempfile.gettempdir()) / f"datalake-{os.getuid()}" / version
    folder.parent.mkdir(mode=0o700, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent) as aside:
                archive = Path(aside) / "environment.zip"
                fetch(environment, archive)
                with zipfile.ZipFile(archive) as packages:
                    packages.extractall(Path(aside) / "packages")
                os.rename(Path(aside) / "packages", folder)
    return folder


def fetch(uri: str, target: Path) -> None:
    """With the tools that every EMR node has, and the role it has."""
    if shutil.which("aws"):
        command = ["aws", "s3", "cp", "--only-show-errors", uri, str(target)]
    else:
        command = ["hadoop", "fs", "-copyToLocal", uri, str(target)]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
