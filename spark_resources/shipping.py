"""Our code and the packages that jobs import: zipped once per version, uploaded to the lake.

Spark unpacks both archives next to each executor, as the folders `code` and `environment`.
"""

import hashlib
import platform
import py_compile
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import distribution
from importlib.util import cache_from_source
from pathlib import Path, PurePath
from py_compile import PycInvalidationMode
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO

from packaging.requirements import Requirement

import eventlake
import spark_resources
from eventlake.rules import paths
from eventlake.rules.errors import UsageError
from eventlake.runs.context import Listener
from eventlake.storage import Storage
from spark_resources.workers import emr_start

_ALWAYS = (1980, 1, 1, 0, 0, 0)
_LEVEL = 3  # higher levels save little and take much longer


def write_zip(target: IO[bytes], files: Mapping[str, Path], compiled: bool = False) -> None:
    """Write files under the given names; with `compiled` also byte code for this Python."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
        for name in sorted(files):
            archive.writestr(_entry(name), files[name].read_bytes())
            if compiled and name.endswith(".py") and (code := _compiled(name, files[name])):
                archive.writestr(_entry(cache_from_source(name)), code)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _ALWAYS)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def _compiled(name: str, source: Path) -> bytes | None:
    """Byte code that is valid whatever the modification time of the unpacked source is."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "out.pyc"
        never = PycInvalidationMode.UNCHECKED_HASH
        if py_compile.compile(str(source), str(out), name, quiet=2, invalidation_mode=never):
            return out.read_bytes()
        return None  # some packages contain files with syntax errors


def files_below(folder: Path, skipped: Iterable[str] = ()) -> dict[str, Path]:
    """All files below a folder by their path from its parent, without byte code."""
    leave_out = {"__pycache__", *skipped}
    return {
        str(path.relative_to(folder.parent)): path
        for path in folder.rglob("*")
        if path.is_file() and not leave_out & set(path.parts)
    }


# PySpark is the cluster's own.
ROOTS = (
    *("boto3", "croniter", "dagster-pipes", "isal", "msgspec"),
    *("numba", "numpy", "pyarrow", "pydantic"),
)
_FORMAT = "2"  # of the archive: increase it when the same packages are packed differently
_NOT_NEEDED = frozenset({"tests", "include", "__pycache__"})
_NOT_NEEDED_SUFFIXES = frozenset({".a", ".h", ".pxd", ".pyi", ".pyx"})
# Of the hundreds of services that botocore describes.
_SERVICES = frozenset({"glue", "s3", "sts"})


@dataclass(frozen=True, slots=True)
class Target:
    """The processor of the nodes of a cluster, and the Python that Spark uses there."""

    machine: str = "x86_64"
    python: str = "3.11"

    @property
    def is_here(self) -> bool:
        here = (sys.platform, platform.machine(), sys.implementation.name)
        version = "{}.{}".format(*sys.version_info)
        return here == ("linux", self.machine, "cpython") and self.python == version


def pins(target: Target) -> dict[str, str]:
    """The version of each package that is needed, dependencies included, as installed here."""
    markers = {
        "python_version": target.python,
        "python_full_version": f"{target.python}.0",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": target.machine,
        "extra": "",
    }
    found: dict[str, str] = {}
    waiting = list(ROOTS)
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in found:
            continue
        found[name] = distribution(name).version
        for line in distribution(name).requires or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate(markers):
                waiting.append(needed.name)
    return dict(sorted(found.items()))


def environment_version(target: Target) -> str:
    """A hash of the packages and the kind of nodes."""
    lines = [_FORMAT, target.machine, target.python]
    lines += [f"{name}=={version}" for name, version in pins(target).items()]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def write_environment(target: Target, out: IO[bytes]) -> None:
    """Pack the installed packages if the nodes are like this machine, else download wheels."""
    installed = _installed(target) if target.is_here else None
    if installed is not None:
        # Otherwise each executor compiles them, which takes seconds.
        write_zip(out, installed, compiled=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        _fetch(target, folder)
        found = {name.split("/", 1)[1]: path for name, path in files_below(Path(folder)).items()}
        write_zip(out, {name: path for name, path in found.items() if _is_needed(PurePath(name))})


def _installed(target: Target) -> dict[str, Path] | None:
    """The installed files of all packages; None if a package does not list its files."""
    found: dict[str, Path] = {}
    for name in pins(target):
        files = distribution(name).files
        if files is None:
            return None
        for file in files:
            if _is_needed(file):
                found[str(file)] = Path(str(file.locate()))
    return found


def _fetch(target: Target, folder: str) -> None:
    """Download wheels: packages that are built here may not run there."""
    tag = f"cp{target.python.replace('.', '')}"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder]
    command += ["--only-binary=:all:", "--implementation", "cp", "--python-version", target.python]
    for abi in (tag, "abi3", "none"):
        command += ["--abi", abi]
    for linux in ("manylinux_2_28", "manylinux_2_17", "manylinux2014"):
        command += ["--platform", f"{linux}_{target.machine}"]
    command += [f"{name}=={version}" for name, version in pins(target).items()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise UsageError(
            f"The packages for the cluster ({target.machine}, Python {target.python}) could not be "
            f"fetched: {lines[-1] if lines else f'pip ended with {done.returncode}'}. pip "
            "downloads them from its index; run Dagster with Python 3.11, for which all of them "
            "have wheels, or make the index reachable."
        )


def _is_needed(file: PurePath) -> bool:
    parts = file.parts
    if ".." in parts or parts[0] == "bin" or _NOT_NEEDED & set(parts):
        return False
    if file.suffix in _NOT_NEEDED_SUFFIXES:
        return False
    described = parts[:2] == ("botocore", "data") and len(parts) > 3
    return not described or parts[2] in _SERVICES


def machines(instance_types: frozenset[str]) -> Iterator[str]:
    """The processors of instance types: `m7g.xlarge` is a Graviton, `m5.xlarge` is not."""
    for kind in sorted(instance_types):
        family = kind.split(".")[0]
        generation = family.lstrip("abcdefghijklmnopqrstuvwxyz-")
        yield "aarch64" if generation.lstrip("0123456789").startswith("g") else "x86_64"


SHIPPED = ("dataflow", "workers")
"""The parts of `spark_resources` that run on a cluster; they import neither engines nor Dagster."""
CODE, ENVIRONMENT = "code", "environment"
PYTHON_PATH = f"./{CODE}:./{ENVIRONMENT}"
"""Before all else on the path of workers: nodes may have other versions of some packages."""
DAEMON = "spark_resources.workers.daemon"


def code_files() -> dict[str, Path]:
    """The package `eventlake` and the parts of `spark_resources` that run on a cluster."""
    engines = Path(spark_resources.__file__)
    files = files_below(Path(eventlake.__file__).parent)
    for name in SHIPPED:
        below = files_below(engines.parent / name)
        files |= {f"{engines.parent.name}/{file}": path for file, path in below.items()}
    files[f"{engines.parent.name}/{engines.name}"] = engines
    return {name: path for name, path in files.items() if path.suffix == ".py"}


def code_version(files: Mapping[str, Path]) -> str:
    """A hash of the sources: compiled files differ each time."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(hashlib.sha256(name.encode()).digest())
        digest.update(hashlib.sha256(files[name].read_bytes()).digest())
    return digest.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Shipped:
    """Where a cluster finds what a step needs, as URIs."""

    start: str
    code: str
    environment: str


def ship(storage: Storage, target: Target, listener: Listener) -> Shipped:
    """Upload what is missing: code once per version of it, packages far less often."""
    code = ship_code(storage)
    start = code.replace(f"{CODE}.zip", "emr_start.py")
    if not storage.exists(start):
        storage.write(start, Path(emr_start.__file__).read_bytes())
    environment = ship_environment(storage, target, listener)
    return Shipped(*(storage.full(path) for path in (start, code, environment)))


def ship_code(storage: Storage) -> str:
    """The path of our code in the storage; uploads it if it is missing."""
    files = code_files()
    path = f"{paths.shipped_code(code_version(files))}/{CODE}.zip"
    if not storage.exists(path):
        with TemporaryFile() as archive:
            write_zip(archive, files, compiled=True)
            archive.seek(0)
            storage.write(path, archive.read())
    return path


def ship_environment(storage: Storage, target: Target, listener: Listener) -> str:
    """The path of the packages for such machines in the storage; uploads them if missing."""
    path = f"{paths.shipped_code(environment_version(target))}/{ENVIRONMENT}.zip"
    if storage.exists(path):
        return path
    listener.log(
        f"Shipping Python packages for {target.machine}, Python {target.python}, to "
        f"{storage.full(path)}; once for these versions"
    )
    with TemporaryFile() as archive:
        write_environment(target, archive)
        archive.seek(0)
        storage.write(path, archive.read())
    return path
