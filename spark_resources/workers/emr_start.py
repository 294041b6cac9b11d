"""The program that a step on EMR runs: makes code and packages importable, then starts the job.

Spark unpacks both for executors (`--archives`), but not for a driver in client mode. Until the code
is there, only the standard library can be imported.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

_CONTENTS = "contents.json"  # beside the files: size and checksum of each


def main(arguments: list[str]) -> int:
    """`emr_start.py CODE ENVIRONMENT …`: two URIs, then the arguments of the job."""
    code, environment, *job = arguments
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "code.zip"
        fetch(code, archive)
        sys.path.insert(0, str(archive))
        version = environment.split("/")[-2]
        sys.path.insert(1, str(unpacked(version, partial(fetch, environment))))
        from spark_resources.workers.emr_main import main as run

        return run(job)


def fetch(uri: str, target: Path) -> None:
    """Copy a file from S3 with the tools and the role that every EMR node has."""
    if shutil.which("aws"):
        command = ["aws", "s3", "cp", "--only-show-errors", uri, str(target)]
    else:
        command = ["hadoop", "fs", "-copyToLocal", uri, str(target)]
    subprocess.run(command, check=True)


def unpacked(name: str, fetch: Callable[[Path], object]) -> Path:
    """The files of an immutable archive, in a private folder that lasts.

    Each file is compared with its checksum: the system may have removed old files, or a process may
    have died while it unpacked.
    """
    from eventlake.columnar.private_folder import private_folder

    folder = private_folder() / name
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the system frees it when its holder dies
        if not is_whole(folder):
            with tempfile.TemporaryDirectory(dir=folder.parent) as aside:
                fresh = _extracted(Path(aside), fetch)
                if folder.exists():
                    os.rename(folder, Path(aside) / "damaged")
                os.rename(fresh, folder)
    return folder / "files"


def _extracted(aside: Path, fetch: Callable[[Path], object]) -> Path:
    archive, folder = aside / "archive.zip", aside / "fresh"
    fetch(archive)
    with zipfile.ZipFile(archive) as content:
        content.extractall(folder / "files")
        files = {i.filename: [i.file_size, i.CRC] for i in content.infolist() if not i.is_dir()}
    (folder / _CONTENTS).write_text(json.dumps(files))
    return folder


def is_whole(folder: Path) -> bool:
    """Whether an unpacked archive still has all its files, unchanged."""
    try:
        files = json.loads((folder / _CONTENTS).read_bytes())
        return all(_is_unchanged(folder / "files" / name, *known) for name, known in files.items())
    except (OSError, ValueError):
        return False


def _is_unchanged(file: Path, size: int, checksum: int) -> bool:
    return file.stat().st_size == size and zlib.crc32(file.read_bytes()) == checksum


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
