"""Guards a web server against other web sites: a page in your browser may call it."""

import os
import socket
from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

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


def own_names(*more: str) -> frozenset[str]:
    """The names by which this machine, and the proxy before it, may be asked for."""
    set_names = os.environ.get(HOSTS_VARIABLE, "").split(",")
    return LOCAL | {name.strip().lower() for name in (*set_names, *more) if name.strip()}
