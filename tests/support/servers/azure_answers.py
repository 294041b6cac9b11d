"""Answers as Azure sends them, in place of those of the server: to requests of Python's clients."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import pytest
import requests
from urllib3 import HTTPResponse


@dataclass(frozen=True)
class Reply:
    """A response; `code` is an error code of Azure Storage."""

    status: int
    code: str = ""
    said: str = "The reason."
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    done: bool = False  # whether the server has carried the request out, unnoticed

    def to(self, request: requests.PreparedRequest) -> requests.Response:
        response = requests.Response()
        response.status_code = self.status
        response.reason = self.said
        response.request, response.url = request, str(request.url)
        response.headers.update({"Content-Type": "application/xml"} | dict(self.headers))
        body = self.body
        if self.code:
            response.headers["x-ms-error-code"] = self.code
            body = f"<Error><Code>{self.code}</Code><Message>{self.said}</Message></Error>".encode()
        if request.method == "HEAD":
            body = b""
        response.raw = HTTPResponse(BytesIO(body), preload_content=False, status=self.status)
        return response


@contextmanager
def answering(
    monkeypatch: pytest.MonkeyPatch, method: str, part: str, *replies: Reply
) -> Iterator[list[str]]:
    """Requests of a method, whose URL has a part, get these replies in turn, then the server's.

    Yields the URLs that were asked.
    """
    left, asked = list(replies), list[str]()
    send = requests.adapters.HTTPAdapter.send

    def answered(self: Any, request: requests.PreparedRequest, *args: Any, **more: Any) -> Any:
        if request.method != method or part not in str(request.url):
            return send(self, request, *args, **more)
        asked.append(str(request.url))
        if not left:
            return send(self, request, *args, **more)
        reply = left.pop(0)
        if reply.done:
            send(self, request, *args, **more).content  # noqa: B018
        return reply.to(request)

    with monkeypatch.context() as patched:
        patched.setattr(requests.adapters.HTTPAdapter, "send", answered)
        yield asked
