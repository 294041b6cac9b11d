"""Our own code as a zip file that Spark puts on the path of driver and executors."""

import hashlib
from io import BytesIO
from pathlib import Path

import eventlake
import spark_resources
from spark_resources.shipping.zips import files_below, write_zip
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
