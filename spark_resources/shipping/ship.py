"""Upload our code and its packages to the storage of the lake, from where clusters fetch them.

Both are archives that Spark unpacks next to each executor, as the folders `code` and `environment`.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

import eventlake
import spark_resources
from eventlake.rules import paths
from eventlake.runs.context import Listener
from eventlake.storage import Storage
from spark_resources.shipping.environment import (
    Target,
    environment_version,
    files_below,
    write_environment,
    write_zip,
)
from spark_resources.workers import emr_start

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
