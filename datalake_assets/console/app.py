"""The web application: routes, rendering, and what holds for every answer."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from datalake_assets.console import pages, view
from datalake_assets.console.access import COOKIE, Access, Role, User
from datalake_assets.console.asked import Asked, BadRequest, Elsewhere, encoded
from datalake_assets.console.downloads import Download
from datalake_assets.console.replays import Replays
from datalake_assets.guard import Guard, own_names
from eventlake.api import EventLake
from eventlake.clouds import as_lake_error
from eventlake.lake import Lake
from eventlake.rules.errors import LakeError, UnknownSource, UsageError
from eventlake.settings.file import FILE_VARIABLE, load_settings

_HERE = Path(__file__).parent
_FORM_BYTES = 100_000
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
_log = logging.getLogger("datalake.console")


@dataclass(frozen=True)
class Console:
    """The application over one lake."""

    my: EventLake
    access: Access
    host: str = "127.0.0.1"
    dagster: str | None = None  # the URL of its UI; empty: it is at the same address
    replays: Replays = field(default_factory=Replays)

    def app(self) -> Starlette:
        routes = [
            Route("/login", self._login, methods=["GET", "POST"]),
            *(self._route(page, path) for page in pages.PAGES for path in page.paths),
            Mount("/static", StaticFiles(directory=_HERE / "static")),
        ]
        return Starlette(
            routes=routes,
            middleware=[
                Middleware(Guard, names=own_names(self.host)),
                Middleware(BaseHTTPMiddleware, dispatch=_secured),
            ],
            exception_handlers={HTTPException: self._refused, Exception: self._broken},
        )

    def _route(self, page: pages.Page, path: str) -> Route:
        async def answer(request: Request) -> Response:
            return await self._answer(page, request)

        return Route(path, answer, methods=["GET", "POST"] if page.posts else ["GET"])

    async def _answer(self, page: pages.Page, request: Request) -> Response:
        user = self.access.user(request)
        as_json = request.url.path.endswith(".json")
        if user is None:
            if as_json or not self.access.tokens:
                raise HTTPException(401, "Send the token as `Authorization: Bearer`.")
            return RedirectResponse(f"{request.scope['root_path']}/login", 303)
        if page.role is Role.OPERATOR and not user.operates:
            raise HTTPException(403, "This page is for operators; your role is viewer.")
        try:
            form = await self._form(request, user) if request.method == "POST" else {}
            asked = Asked(
                self.my, user, form or request.query_params, request.path_params, bool(form)
            )
            model = await run_in_threadpool(page.gather, asked, self)
        except Exception as error:
            return self._failed(request, user, error)
        if isinstance(model, Download):
            return StreamingResponse(
                model.content,
                media_type=model.media_type,
                headers={"Content-Disposition": f'attachment; filename="{model.name}"'},
            )
        if isinstance(model, Elsewhere):
            return RedirectResponse(f"{request.scope['root_path']}{model.path}", 303)
        if as_json:
            return Response(encoded(model), media_type="application/json")
        return self._html(request, page.template, user, model=model, page=page, asked=asked)

    async def _form(self, request: Request, user: User) -> dict[str, str]:
        """The fields of a form of this console; a program sends its token instead of the form's."""
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _FORM_BYTES:
                raise HTTPException(413, f"A form has {_FORM_BYTES:,} bytes at most.")
        try:
            fields = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=1_000)
        except ValueError:
            raise BadRequest("The form cannot be read.") from None
        several: dict[str, list[str]] = {}
        for name, value in fields:
            several.setdefault(name, []).append(value)
        form = {name: "\n".join(values) for name, values in several.items()}
        bearer = "authorization" in request.headers and bool(self.access.tokens)
        if not bearer and not self.access.is_form_of(user, form.pop("csrf", "")):
            raise HTTPException(403, "This form is too old, or of another site. Reload it.")
        return form

    async def _login(self, request: Request) -> Response:
        root = request.scope["root_path"]
        if not self.access.tokens:
            return RedirectResponse(f"{root}/", 303)
        if request.method == "GET":
            return self._html(request, "login.html", None, wrong=False)
        form = dict(parse_qsl((await request.body())[:_FORM_BYTES].decode(errors="replace")))
        role = self.access.role_of(form.get("token", ""))
        if role is None:
            return self._html(request, "login.html", None, HTTPStatus.FORBIDDEN, wrong=True)
        answer = RedirectResponse(f"{root}/", 303)
        answer.set_cookie(
            COOKIE,
            self.access.session(role),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
            path=root or "/",
        )
        return answer

    def _failed(self, request: Request, user: User, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            raise error
        known = as_lake_error(error)
        if known is None:
            _log.exception("%s failed", request.url.path)
            raise HTTPException(500, "Something is wrong in the console; its log has the details.")
        return self._error(request, user, _status(known), str(known))

    def _error(self, request: Request, user: User | None, status: int, message: str) -> Response:
        if request.url.path.endswith(".json"):
            return Response(encoded({"error": message}), status, media_type="application/json")
        return self._html(request, "error.html", user, status, status=status, message=message)

    async def _refused(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return self._error(request, self.access.user(request), error.status_code, error.detail)

    async def _broken(self, request: Request, error: Exception) -> Response:
        return self._error(request, None, 500, "Something is wrong in the console.")

    def _html(
        self, request: Request, template: str, user: User | None, code: int = 200, **values: Any
    ) -> Response:
        root, uri = request.scope["root_path"], self.my.lake.settings.storage_uri
        shared = {
            "root": root,
            "user": user,
            "csrf": self.access.csrf(user) if user else "",
            "lake": self.my.lake.settings.workspace_id,
            "storage": uri if "://" in uri else Path(uri).name,
            "dagster": self.dagster,
            "path": request.url.path,
            "query": dict(request.query_params),
        }
        text = _TEMPLATES.get_template(template).render(shared | values)
        return Response(text, code, media_type="text/html")


def _status(error: LakeError) -> int:
    if isinstance(error, BadRequest):
        return 400
    if isinstance(error, UnknownSource):
        return 404
    return 422 if isinstance(error, UsageError) else 500


async def _secured(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
    response = await answer(request)
    for name, value in _HEADERS.items():
        if name != "Cache-Control" or not request.url.path.startswith("/static/"):
            response.headers[name] = value
    return response


def _templates() -> Environment:
    found = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(view.FILTERS)
    found.globals.update(view.GLOBALS)
    return found


_TEMPLATES = _templates()

DAGSTER_VARIABLE = "DATALAKE_DAGSTER_URL"
_SECONDS_BETWEEN_LOOKS = 600


def open_console(host: str, environ: Mapping[str, str], dagster: str | None = None) -> Console:
    """The console over the lake of $DATALAKE_CONFIG; raises if anybody could open it."""
    access = Access.of(host, environ)
    config = Path(environ[FILE_VARIABLE])
    my = EventLake(Lake.open(load_settings(config, environ, Path.cwd())))
    # What all pages need is read before the first of them is asked for.
    Thread(target=_watch, args=(my,), daemon=True).start()
    url = environ.get(DAGSTER_VARIABLE)
    return Console(my, access, host, url.rstrip("/") if url else dagster, Replays(config))


def _watch(my: EventLake) -> None:
    """Look for damaged files from time to time: it is too slow for a page."""
    while True:
        with suppress(LakeError, OSError):
            my.health(days=90)
            for source in my.sources:
                my.past.damaged(my.lake, source, again=True)
        sleep(_SECONDS_BETWEEN_LOOKS)
