"""Dagster's webserver, guarded against other web sites: a page in your browser may call it.

Dagster checks neither the host that a browser asked for (a foreign name may lead to 127.0.0.1) nor
the site that a request comes from, and it runs mutations by GET.
"""

import os
import socket
import sys
from collections.abc import Collection
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qs, urlsplit

from dagster_webserver.webserver import DagsterWebserver
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from datalake_assets.instance.dagster_private import run_dev, run_webserver
from datalake_assets.sensors.reload import WEBSERVER_VARIABLE

HOSTS_VARIABLE = "DATALAKE_UI_HOSTS"
"""More names of the UI, separated by commas, such as that of a proxy: `lake.example.com`."""


class Guard:
    """Refuses requests to foreign hosts, from foreign sites, and queries by GET."""

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self._app, self._names = app, frozenset(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refusal(scope) if scope["type"] in ("http", "websocket") else None
        if refused is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await PlainTextResponse(f"{refused}\n", 403)(scope, receive, send)

    def _refusal(self, scope: Scope) -> str | None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if host and not self._is_ours(urlsplit(f"//{host}").hostname):
            return f"{host} is not a name of this server. Add it to ${HOSTS_VARIABLE}."
        if origin is not None and not self._is_from_us(origin, host):
            return f"Requests from {origin} are not allowed."
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        if scope.get("method") == "GET" and scope["path"].endswith("/graphql") and "query" in query:
            return "Send queries by POST."
        return None

    def _is_ours(self, name: str | None) -> bool:
        return name is not None and (name in self._names or _is_address(name))

    def _is_from_us(self, origin: str, host: str) -> bool:
        parts = urlsplit(origin)
        return parts.netloc == host or parts.hostname in self._names - LOCAL


LOCAL = frozenset({"localhost", socket.gethostname().lower()})


def _is_address(name: str) -> bool:
    """An IP address was typed or configured; no other site can make a browser use it as a name."""
    try:
        return bool(ip_address(name))
    except ValueError:
        return False


def names() -> frozenset[str]:
    """The names by which the UI may be asked for."""
    more = os.environ.get(HOSTS_VARIABLE, "").split(",")
    ours = os.environ.get(WEBSERVER_VARIABLE, "").rpartition(":")[0]  # for the other processes
    return LOCAL | {name.strip().lower() for name in (*more, ours) if name.strip()}


class GuardedWebserver(DagsterWebserver[Any, Any]):
    def build_middleware(self) -> list[Middleware]:
        return [Middleware(Guard, names=names()), *super().build_middleware()]


def main() -> None:
    """`dagster-webserver`, or `dagster dev` if that is the first argument, with the guard."""
    if sys.argv[1:2] == ["dev"]:
        run_dev(__spec__.name)
    else:
        run_webserver(GuardedWebserver)


if __name__ == "__main__":
    main()
