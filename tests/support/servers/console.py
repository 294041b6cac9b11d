"""The console as a server in this process."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlencode

import msgspec
import uvicorn

from datalake_assets.console.app import Console


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


@dataclass(frozen=True)
class Client:
    """Asks a console; `headers` are those of every request."""

    port: int
    console: Console
    headers: Mapping[str, str]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, None, headers)

    def post(self, path: str, form: Mapping[str, Any], **headers: str) -> Answer:
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.ask("POST", path, urlencode(form, doseq=True), kind | headers)

    def ask(self, method: str, path: str, body: str | None, headers: Mapping[str, str]) -> Answer:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, {**self.headers, **named})
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()


@contextmanager
def serving(console: Console, **headers: str) -> Iterator[Client]:
    """A console at a free port until the block ends."""
    config = uvicorn.Config(console.app(), port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    ready = threading.Event()
    startup = server.startup

    async def started(sockets: Any = None) -> None:
        await startup(sockets)
        ready.set()

    server.startup = started  # type: ignore[method-assign]
    thread.start()
    try:
        assert ready.wait(60)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield Client(port, console, headers)
    finally:
        server.should_exit = True
        thread.join(60)
