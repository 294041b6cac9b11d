"""A Postgres server of our own for tests: in a folder of its own, on a free port of 127.0.0.1."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2  # type: ignore[import-untyped]

from tests.support.repo import ROOT, reserved_port

_USER = "postgres"  # runs it if we are root, which Postgres refuses


@dataclass(frozen=True)
class Postgres:
    """A running server with a database `dagster` that anybody on this machine may use."""

    port: int

    def url_of(self, database: str) -> str:
        return f"postgresql://{_USER}@127.0.0.1:{self.port}/{database}"

    @property
    def url(self) -> str:
        return self.url_of("dagster")

    def ask(self, sql: str, database: str = "dagster") -> list[tuple[Any, ...]]:
        with closing(psycopg2.connect(self.url_of(database))) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(sql)
                return cursor.fetchall() if cursor.description else []


@contextmanager
def running_postgres(durable: bool = False) -> Iterator[Postgres]:
    """Unless durable, writes may be lost with the machine's power."""
    programs, folder = _programs(), Path(tempfile.mkdtemp(prefix="datalake-postgres-"))
    data = folder / "data"
    with reserved_port() as port, ExitStack() as at_the_end:
        at_the_end.callback(shutil.rmtree, folder, ignore_errors=True)
        if os.geteuid() == 0:
            shutil.chown(folder, _USER)
        folder.chmod(0o700)
        _run([programs / "initdb", "-D", data, "-U", _USER, "-A", "trust", "-N", "-E", "UTF8"])
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
        if not durable:
            options += " -c fsync=off -c synchronous_commit=off -c full_page_writes=off"
        control = [programs / "pg_ctl", "-D", data, "-w"]
        _run([*control, "-t", "120", "-l", folder / "log", "-o", options, "start"])
        at_the_end.callback(_run, [*control, "-m", "immediate", "stop"])
        server = Postgres(port)
        server.ask("CREATE DATABASE dagster", database="postgres")
        yield server


def _programs() -> Path:
    """Where they are; Debian keeps them out of the PATH."""
    said = subprocess.run([ROOT / "scripts/postgres"], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
    return Path(said.stdout.splitlines()[-1].removeprefix("postgres: ")).resolve().parent


def _run(command: Sequence[object]) -> None:
    words = [str(word) for word in command]
    if os.geteuid() == 0:
        words = ["runuser", "-u", _USER, "--", *words]
    done = subprocess.run(
        words, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
