"""Our own code as a zip file that Spark puts on the path of driver and executors."""

import hashlib
from io import BytesIO
from pathlib import Path

import eventlake
import spark_resources.jobs
from spark_resources.jobs import emr_start
from spark_resources.shipping.zips import files_below, write_zip


def code_zip() -> bytes:
    """The packages `eventlake` and `spark_resources.jobs`; nothing of the engines or of Dagster."""
    engines = Path(spark_resources.__file__)
    jobs = Path(spark_resources.jobs.__file__).parent
    files = files_below(Path(eventlake.__file__).parent)
    files |= {f"spark_resources/{name}": path for name, path in files_below(jobs).items()}
    files[f"spark_resources/{engines.name}"] = engines
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
