"""A Blob Storage of our own for tests: Azurite on 127.0.0.1, which other processes reach, too."""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from azure.storage.blob import ContainerClient, generate_container_sas

from eventlake.azure.access import AzureAccess, forget_sessions
from tests.support.repo import ROOT

ACCOUNT = "devstoreaccount1"
HOST = f"{ACCOUNT}.dfs.core.windows.net"
# Azurite's own, which its documentation shows.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_START_SECONDS = 60.0
_numbers = count()


@dataclass(frozen=True)
class Azurite:
    """A running server and what a process must know to take it for Azure."""

    url: str

    @property
    def connection_string(self) -> str:
        return f"AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={self.url}/{ACCOUNT};"

    @property
    def endpoint_only(self) -> str:
        """A connection string without the key."""
        return f"AccountName={ACCOUNT};BlobEndpoint={self.url}/{ACCOUNT};"

    @property
    def environment(self) -> Mapping[str, str]:
        return {"AZURE_STORAGE_CONNECTION_STRING": self.connection_string}

    def client(self, container: str) -> ContainerClient:
        """A client for what a test prepares and looks up."""
        return AzureAccess().container(HOST, container)

    def container(self) -> str:
        """A new container's name."""
        name = f"lake-{os.getpid()}-{next(_numbers)}"
        self.client(name).create_container()
        return name

    def emptied(self, name: str) -> str:
        """A container of this name, without what earlier tests left in it."""
        client = self.client(name)
        if not client.exists():
            client.create_container()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(client.delete_blob, list(client.list_blob_names())))
        return name

    def fill(self, container: str, names: Iterable[str]) -> None:
        """Blobs without content."""
        client = self.client(container)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda name: client.upload_blob(name, b"", overwrite=True), names))

    def content(self, container: str, prefix: str = "") -> dict[str, bytes]:
        """The blobs below a prefix."""
        client = self.client(container)
        names = list(client.list_blob_names(name_starts_with=prefix or None))
        return {name: client.download_blob(name).readall() for name in names}


def sas_of(container: str, permission: str, hours: float = 1) -> str:
    """A SAS of a container that expires after some hours."""
    expiry = datetime.now(UTC) + timedelta(hours=hours)
    found: str = generate_container_sas(
        ACCOUNT, container, account_key=KEY, permission=permission, expiry=expiry
    )
    return found


@contextmanager
def running_azurite(*options: str) -> Iterator[Azurite]:
    """A server whose data is in memory."""
    said = subprocess.run([ROOT / "scripts/azurite"], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
    program = said.stdout.splitlines()[-1].removeprefix("azurite: ")
    with tempfile.TemporaryDirectory(prefix="datalake-azurite-") as folder:
        log = Path(folder, "log")
        # It knows fewer versions of the protocol than the newest client, which it can do without.
        more = ("--inMemoryPersistence", "--disableTelemetry", "--silent", "--skipApiVersionCheck")
        with log.open("wb") as out:
            process = subprocess.Popen(
                ["node", program, "--blobPort", "0", *more, *options],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=folder,
            )
        try:
            yield Azurite(_url(process, log))
        finally:
            process.kill()
            process.wait()


def _url(process: "subprocess.Popen[Any]", log: Path) -> str:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        _, found, rest = log.read_text().partition("successfully listens on ")
        if found and "\n" in rest:
            return rest.splitlines()[0]
        time.sleep(0.05)
    raise RuntimeError(f"Azurite did not start:\n{log.read_text()[-2_000:]}")


@contextmanager
def fresh_sessions() -> Iterator[None]:
    """No clients of an earlier environment, nor any left for a later one."""
    forget_sessions()
    try:
        yield
    finally:
        forget_sessions()
