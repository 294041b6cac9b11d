"""Code and packages on their way to the lake's storage, where clusters fetch them."""

from dataclasses import dataclass
from tempfile import TemporaryFile

from eventlake.rules import paths
from eventlake.runs.context import Listener
from eventlake.storage import Storage
from spark_resources.shipping.code import code_zip, start_script, version_of
from spark_resources.shipping.environment import (
    Target,
    environment_version,
    write_environment,
)


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
