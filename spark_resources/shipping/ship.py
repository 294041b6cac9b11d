"""Upload our code and its packages to the storage of the lake, from where clusters fetch them."""

import hashlib
from dataclasses import dataclass
from io import BytesIO
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
"""What of `spark_resources` runs on a cluster; it imports neither the engines nor Dagster."""


def code_zip() -> bytes:
    """The package `eventlake` and the parts of `spark_resources` that run on a cluster."""
    engines = Path(spark_resources.__file__)
    files = files_below(Path(eventlake.__file__).parent)
    for name in SHIPPED:
        below = files_below(engines.parent / name)
        files |= {f"{engines.parent.name}/{file}": path for file, path in below.items()}
    files[f"{engines.parent.name}/{engines.name}"] = engines
    content = BytesIO()
    write_zip(content, {name: path for name, path in files.items() if path.suffix == ".py"})
    return content.getvalue()


def start_script() -> bytes:
    return Path(emr_start.__file__).read_bytes()


def version_of(*contents: bytes) -> str:
    digest = hashlib.sha256()
    for content in contents:
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Shipped:
    """Where a cluster finds what a step needs, as URIs."""

    start: str
    code: str
    environment: str


def ship(storage: Storage, target: Target, listener: Listener) -> Shipped:
    """Bring what is not there yet: our code for each version of it, packages far less often."""
    code, start = code_zip(), start_script()
    ours = paths.shipped_code(version_of(code, start))
    environment = ship_environment(storage, target, listener)
    shipped = Shipped(f"{ours}/emr_start.py", f"{ours}/datalake.zip", environment)
    # Each is put in place whole, and its path tells its content: what is there, is right.
    for path, content in ((shipped.code, code), (shipped.start, start)):
        if not storage.exists(path):
            storage.write(path, content)
    return Shipped(*(storage.full(p) for p in (shipped.start, shipped.code, environment)))


def ship_environment(storage: Storage, target: Target, listener: Listener) -> str:
    """Where the packages lie for such machines, brought there if nobody has before."""
    path = f"{paths.shipped_code(environment_version(target))}/environment.zip"
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
