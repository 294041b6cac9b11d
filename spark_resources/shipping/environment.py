"""The Python packages that jobs import, in the versions installed here, zipped for a cluster."""

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
from tempfile import TemporaryDirectory
from typing import IO

from packaging.requirements import Requirement

from eventlake.rules.errors import UsageError

_ALWAYS = (1980, 1, 1, 0, 0, 0)
# Half of what one level more saves costs as much time as all so far.
_LEVEL = 3


def write_zip(target: IO[bytes], files: Mapping[str, Path], compiled: bool = False) -> None:
    """The files by their names in the archive; Python's also compiled, for this Python."""
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
    """Good whatever the time of the source is where it is unpacked."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "out.pyc"
        never = PycInvalidationMode.UNCHECKED_HASH
        if py_compile.compile(str(source), str(out), name, quiet=2, invalidation_mode=never):
            return out.read_bytes()
        return None  # some packages have files that no Python reads


def files_below(folder: Path, skipped: Iterable[str] = ()) -> dict[str, Path]:
    """All files of a folder by their path from its parent, without what Python leaves behind."""
    leave_out = {"__pycache__", *skipped}
    return {
        str(path.relative_to(folder.parent)): path
        for path in folder.rglob("*")
        if path.is_file() and not leave_out & set(path.parts)
    }


# PySpark is the cluster's own; it imports pandas before it hands over Arrow batches.
ROOTS = (
    *("arro3-io", "boto3", "croniter", "dagster-pipes", "isal", "msgspec"),
    *("numba", "numpy", "pandas", "pyarrow", "pydantic"),
)
_FORMAT = "2"  # of the archive: change it when something else goes into it
_NOT_NEEDED = frozenset({"tests", "include", "__pycache__"})
_NOT_NEEDED_SUFFIXES = frozenset({".a", ".h", ".pxd", ".pyi", ".pyx"})
# Of the hundreds of services that botocore describes.
_SERVICES = frozenset({"glue", "s3", "sts"})


@dataclass(frozen=True, slots=True)
class Target:
    """What the nodes of a cluster are: their processor, and the Python that Spark uses there."""

    machine: str = "x86_64"
    python: str = "3.11"

    @property
    def is_here(self) -> bool:
        here = (sys.platform, platform.machine(), sys.implementation.name)
        version = "{}.{}".format(*sys.version_info)
        return here == ("linux", self.machine, "cpython") and self.python == version


def pins(target: Target) -> dict[str, str]:
    """Each package that is needed with its version here, dependencies included."""
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
    """Tells environments apart; the same packages for the same nodes are the same environment."""
    told = [_FORMAT, target.machine, target.python]
    told += [f"{name}=={version}" for name, version in pins(target).items()]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]


def write_environment(target: Target, out: IO[bytes]) -> None:
    """Taken from here if the nodes are like this machine, else fetched for them."""
    installed = _installed(target) if target.is_here else None
    if installed is not None:
        # To compile them takes every single worker seconds, before its first task.
        write_zip(out, installed, compiled=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        _fetch(target, folder)
        found = {name.split("/", 1)[1]: path for name, path in files_below(Path(folder)).items()}
        write_zip(out, {name: path for name, path in found.items() if _is_needed(PurePath(name))})


def _installed(target: Target) -> dict[str, Path] | None:
    """The files of the packages as they are installed here, if that is known of all."""
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
    """Wheels only: what is built here would not run there."""
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
        told = done.stderr.strip().splitlines()
        raise UsageError(
            f"The packages for the cluster ({target.machine}, Python {target.python}) could not be "
            f"fetched: {told[-1] if told else f'pip ended with {done.returncode}'}. They are taken "
            "from where pip installs from here; run Dagster with Python 3.11, for which all of "
            "them have wheels, or make pip's index reachable."
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
    """The processors that instances have: `m7g.xlarge` is a Graviton, `m5.xlarge` is not."""
    for kind in sorted(instance_types):
        family = kind.split(".")[0]
        generation = family.lstrip("abcdefghijklmnopqrstuvwxyz-")
        yield "aarch64" if generation.lstrip("0123456789").startswith("g") else "x86_64"
