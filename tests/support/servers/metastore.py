"""A Hive metastore of our own for tests, with the classes of PySpark and a database in memory.

Its machine has no connector for object stores, which a metastore asks for the folders of tables.
So it takes those of one container and one bucket for folders of this machine.
"""

import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from eventlake.catalog.hive.client import Metastore
from eventlake.settings.hive import Hive
from tests.support.repo import reserved_port
from tests.support.servers.azurite import HOST

_HOME = Path(pyspark.__file__).parent
_START_SECONDS = 120.0
_PASSED_ON = ("HOME", "JAVA_HOME", "LANG", "PATH")
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx512m -Dlog4j2.level=warn"
CONTAINER = "lake-of-hive"
BUCKET = "lake-of-hive"
MEMORY = "jdbc:derby:memory:metastore;create=true"


@dataclass(frozen=True)
class MetastoreServer:
    """A running metastore."""

    port: int
    log: Path

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"

    @property
    def settings(self) -> Hive:
        return Hive(uri=self.uri)


@contextmanager
def running_metastore(
    folder: Path, database: str = MEMORY, options: Mapping[str, str] | None = None
) -> Iterator[MetastoreServer]:
    """`database`: where it keeps what it knows; `options`: more of its settings."""
    settings = {
        "hive.async.log.enabled": "false",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "datanucleus.connectionPoolingType": "HikariCP",  # PySpark has no other pool
        "javax.jdo.option.ConnectionURL": database,
        "hive.metastore.warehouse.dir": f"file:{folder}/warehouse",
        **_as_folders(folder, "abfss", f"{CONTAINER}@{HOST}"),
        **_as_folders(folder, "s3", BUCKET),
        **(options or {}),
    }
    with reserved_port() as port:
        log = folder / "metastore.log"
        inherited = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        java = f"{_JAVA} -Dderby.stream.error.file={folder}/derby.log -Djava.io.tmpdir={folder}"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [
                    f"{_HOME}/bin/spark-class",
                    "org.apache.hadoop.hive.metastore.HiveMetaStore",
                    *("-p", str(port)),
                    *(word for item in settings.items() for word in ("--hiveconf", "=".join(item))),
                ],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=folder,
                env={**inherited, "SPARK_HOME": str(_HOME), "JAVA_TOOL_OPTIONS": java},
            )
        try:
            _await(process, log, port)
            yield MetastoreServer(port, log)
        finally:
            process.kill()
            process.wait()


def clear(server: MetastoreServer) -> None:
    """Remove all databases; files of tables stay."""

    metastore = Metastore(server.settings)
    for name in metastore.call("databases", "get_all_databases"):
        if name != "default":
            metastore.call(name, "drop_database", name, False, True)


def _as_folders(folder: Path, scheme: str, authority: str) -> dict[str, str]:
    mounted = folder / scheme
    mounted.mkdir()
    return {
        f"fs.{scheme}.impl": "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme",
        f"fs.viewfs.mounttable.{authority}.linkFallback": f"file://{mounted}",
    }


def _await(process: "subprocess.Popen[bytes]", log: Path, port: int) -> None:
    """Until it listens: Linux says so without a connection, which it would log."""
    listening = re.compile(rf"^\s*\d+: [0-9A-F]+:{port:04X} [0-9A-F]+:0000 0A ", re.MULTILINE)
    tables = [Path("/proc/net/tcp"), Path("/proc/net/tcp6")]
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        if any(listening.search(table.read_text()) for table in tables if table.exists()):
            return
        time.sleep(0.1)
    raise RuntimeError(f"The metastore did not start:\n{log.read_text()[-2_000:]}")
