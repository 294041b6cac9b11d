"""What an EMR node has, for steps of tests: `aws`, `spark-submit` with S3, a bare Python."""

import os
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyspark

from tests.support.repo import ROOT
from tests.support.servers.aws import AwsServer

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
Command = Callable[["Node", Path, list[str]], list[str]]
"""From the folder and the arguments of a step to the command that is run for it, there."""

_AWS = f"""#!{sys.executable}
import sys
from urllib.parse import urlparse
from eventlake.aws.access import AwsAccess
source, target = sys.argv[-2:]
s3 = AwsAccess().client("s3")
if target.startswith("s3://"):
    place = urlparse(target)
    with open(source, "rb") as content:
        s3.put_object(Bucket=place.netloc, Key=place.path[1:], Body=content)
else:
    place = urlparse(source)
    body = s3.get_object(Bucket=place.netloc, Key=place.path[1:])["Body"]
    with open(target, "wb") as out:
        for chunk in body.iter_chunks(1 << 20):
            out.write(chunk)
"""


@dataclass
class Node:
    """The machine that steps run on: a folder for each, and what lies on its disk."""

    folder: Path
    server: AwsServer
    has_aws: bool = True

    def __post_init__(self) -> None:
        if self.has_aws:
            self._script("aws", _AWS)
        base = getattr(sys, "_base_executable", sys.executable)
        self._script(f"python{PYTHON}", f'#!/bin/sh\nexec {base} -S "$@"\n')
        (self.folder / "tmp").mkdir()

    def _script(self, name: str, content: str) -> None:
        script = self.folder / "bin" / name
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(content)
        script.chmod(0o755)

    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if k in ("HOME", "JAVA_HOME", "LANG")}
        return {
            **kept,
            **self.server.environment,
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "TMPDIR": str(self.folder / "tmp"),
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }

    def localized(self, uri: str) -> Path:
        """A file of S3 on the disk, as Hadoop brings it there."""
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        target = self.folder / "cache" / bucket / key
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(self.server.content(bucket, key)[key])
        return target

    def unpack(self, archives: str, folder: Path) -> None:
        """Archives as Spark is given them, in a working folder."""
        for archive in archives.split(","):
            uri, _, alias = archive.partition("#")
            (folder / alias).symlink_to(self.unpacked(uri))

    def unpacked(self, uri: str) -> Path:
        """An archive of S3, unpacked, as Spark does it for executors."""
        archive = self.localized(uri)
        folder = archive.with_suffix("")
        if not folder.exists():
            with zipfile.ZipFile(archive) as packages:
                packages.extractall(folder)
        return folder


def spark_submit(node: Node, folder: Path, args: list[str]) -> list[str]:
    """The step's own command, on this machine instead of on YARN."""
    assert args[0] == "spark-submit"
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[2]"]
    rest = iter(args[1:])
    for arg in rest:
        if arg == "--archives":
            node.unpack(next(rest), folder)
        elif arg.startswith("s3://") and arg.endswith(".py"):
            fewer = ["--conf", "spark.default.parallelism=2"]  # what this machine has
            return [*command, *fewer, str(node.localized(arg)), *rest]
        elif arg.startswith("s3://"):
            command.append(str(node.localized(arg)))
        else:
            command.append(arg)
    raise AssertionError("the step runs no Python file")


def bare_start(node: Node, folder: Path, args: list[str]) -> list[str]:
    """The start of the step by the bare Python of the node."""
    start = next(n for n, arg in enumerate(args) if arg.endswith("emr_start.py"))
    python = str(node.folder / "bin" / f"python{PYTHON}")
    fresh = f"DATALAKE_CACHE={folder / 'cache'}"  # nothing was ever unpacked here
    return ["env", fresh, python, str(node.localized(args[start])), *args[start + 1 :]]


IN_PROCESS = "from tests.support.lakes.in_process import InProcess as Flow"


def without_spark(node: Node, folder: Path, args: list[str]) -> list[str]:
    """The same job, its tasks one after the other in its own process."""
    return _plain_python(args, IN_PROCESS)


def gated(gate: Path, units: int) -> Command:
    """The same, but only the first units of work pass before the file `gate` exists.

    After a minute the job fails, so that a broken test does not wait forever.
    """
    flow = gated_flow(gate, units)
    return lambda node, folder, args: _plain_python(args, flow)


def gated_flow(gate: Path, units: int) -> str:
    return (
        "import os, time\n"
        "from tests.support.lakes.in_process import InProcess\n"
        "class Flow(InProcess):\n"
        f"    passing = {units}\n"
        "    def stage(self, job, tasks):\n"
        "        Flow.passing -= 1\n"
        "        end = time.monotonic() + 60\n"
        f"        while Flow.passing < 0 and not os.path.exists({str(gate)!r}):\n"
        "            assert time.monotonic() < end, 'the gate was not opened'\n"
        "            time.sleep(0.05)\n"
        "        return super().stage(job, tasks)"
    )


def _plain_python(args: list[str], flow: str) -> list[str]:
    start = next(n for n, arg in enumerate(args) if arg.endswith("emr_start.py"))
    return plain_python(args[start + 3 :], flow)


def plain_python(arguments: list[str], flow: str) -> list[str]:
    """The job with these arguments and a dataflow of tests, in the environment of the tests."""
    main = "from spark_resources.workers.emr_main import main"
    path = f"import sys\nsys.path.append({str(ROOT)!r})"
    code = f"{path}\n{flow}\n{main}\nsys.exit(main(sys.argv[1:], Flow))"
    return [sys.executable, "-c", code, *arguments]


def shell(script: str) -> Command:
    """Something else instead of the job."""
    return lambda node, folder, args: ["sh", "-c", script]
