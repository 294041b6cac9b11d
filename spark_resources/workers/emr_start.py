"""The program that a job on EMR runs: makes code and packages importable, then starts the job.

Spark unpacks both for executors, and for a driver in a container of its own, but not for a driver
on the master node of a cluster. Until the code is there, only the standard library can be imported.
"""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
import zipfile
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import urlparse

_CONTENTS = "contents.json"  # beside the files: size and checksum of each
_UNPACKED = ("code", "environment")  # by Spark, in the working folder
_MESSAGES = "--dagster-pipes-messages"
_PROTOCOL = {"__dagster_pipes_version": "0.1"}


def main(arguments: list[str]) -> int:
    """`emr_start.py CODE ENVIRONMENT …`: two URIs, then the arguments of the job."""
    code, environment, *job = arguments
    with tempfile.TemporaryDirectory() as folder:
        try:
            make_importable(code, environment, Path(folder))
            from spark_resources.workers.emr_main import main as run
        except Exception as error:
            report_failure(error, job, Path(folder))
            raise
        return run(job)


def make_importable(code: str, environment: str, folder: Path) -> None:
    """Put our code and its packages on the path, in this order."""
    if all(os.path.isdir(name) for name in _UNPACKED):
        sys.path[:0] = map(os.path.abspath, _UNPACKED)
        return
    archive = folder / "code.zip"
    copy(code, str(archive))
    sys.path.insert(0, str(archive))
    version = environment.split("/")[-2]
    fetch = partial(copy, environment)
    sys.path.insert(1, str(unpacked(version, lambda target: fetch(str(target)))))


def copy(source: str, target: str) -> None:
    """Copy a file from or to S3 with what the machine has, and with its role."""
    if shutil.which("aws"):
        command = ["aws", "s3", "cp", "--only-show-errors", source, target]
        subprocess.run(command, check=True)
        return
    import boto3  # EMR Serverless has it, and no `aws`

    s3 = boto3.client("s3")
    there = urlparse(source if source.startswith("s3://") else target)
    if source.startswith("s3://"):
        s3.download_file(there.netloc, there.path[1:], target)
    else:
        s3.upload_file(source, there.netloc, there.path[1:])


def report_failure(error: Exception, job: Sequence[str], folder: Path) -> None:
    """Send the error to Dagster as the job would: what sends its messages may not be there.

    Otherwise, the cause is only in the log, which EMR copies to S3 after minutes.
    """
    place = json.loads(zlib.decompress(base64.b64decode(job[job.index(_MESSAGES) + 1])))
    trace = "".join(traceback.format_exception(error)).rstrip()
    text = f"the job could not start: {type(error).__name__}: {error}"
    failed = {"type": "failed", "kind": "StartFailed", "text": text}
    messages = [
        _message("log", {"level": "ERROR", "message": trace}),
        _message("report_custom_message", {"payload": failed}),
        _message("closed", {}),
    ]
    chunk = folder / "1.json"
    chunk.write_text("\n".join(messages))
    try:
        copy(str(chunk), f"s3://{place['bucket']}/{place['key_prefix']}/1.json")
    except Exception:  # the log has to do
        traceback.print_exc()


def _message(method: str, params: object) -> str:
    return json.dumps({**_PROTOCOL, "method": method, "params": params})


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
