"""Webhooks: JSON for Slack, with `text` for people and structured facts for programs."""

import http.client
import json
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from eventlake.alerts.channels import TIMEOUT, NotSent
from eventlake.alerts.state import Message
from eventlake.rules.errors import InvalidSetting
from eventlake.settings.alerts import secret_of

_SLACK = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_LENGTH = 3_000  # characters that Slack shows of a text


@dataclass(frozen=True)
class WebHook:
    """Posts messages to a URL, which is a secret and never shown."""

    url: str  # or $NAME of an environment variable
    environ: Mapping[str, str] = field(repr=False)

    @property
    def address(self) -> str:
        """The host and a hash that identifies the hook."""
        if self.url.startswith("$"):
            return self.url
        return f"{urlsplit(self.url).hostname} {sha256(self.url.encode()).hexdigest()[:8]}"

    def send(self, message: Message) -> str:
        body = json.dumps(posted(message), ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "datalake"}
        url = self._url()
        host = urlsplit(url).hostname
        try:
            request = Request(url, data=body, headers=headers, method="POST")
            with build_opener(_NoRedirects).open(request, timeout=TIMEOUT) as answer:
                answer.read(1)
        except HTTPError as error:
            with error:
                said = " ".join(error.read(300).decode(errors="replace").split())
            raise NotSent(
                f"web hook at {host} answered {error.code}{f' ({said})' if said else ''}. "
                "If it persists, create a new hook there and correct `alerts.webhook`."
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise NotSent(_unreachable(host, error)) from None
        return ""

    def check(self) -> str:
        """Connect and, for https, verify the certificate; nothing is posted."""
        parts = urlsplit(self._url())
        host = parts.hostname or ""
        secure = parts.scheme == "https"
        port = parts.port or (443 if secure else 80)
        try:
            with socket.create_connection((host, port), timeout=TIMEOUT) as connection:
                if secure:
                    context = ssl.create_default_context()
                    context.wrap_socket(connection, server_hostname=host).close()
        except OSError as error:
            raise NotSent(_unreachable(host, error)) from None
        how = "TLS" if secure else "no encryption"
        return f"{host}:{port} answers, {how}; nothing was posted"

    def _url(self) -> str:
        try:
            url = secret_of("webhook", self.url, self.environ)
        except InvalidSetting as error:
            raise NotSent(str(error)) from None
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise NotSent(f"The variable {self.url[1:]} of `alerts.webhook` holds no https://… URL")
        return url


def posted(message: Message) -> dict[str, Any]:
    """A message for Slack; texts are escaped, so they cannot mention people or add links."""
    text = message.text.translate(_SLACK)
    title, _, rest = text.partition("\n")
    sign = ":white_check_mark:" if message.over else ":rotating_light:"
    return {
        "text": f"{sign} *{title}*\n{rest}"[:_LENGTH],
        "metadata": {
            "event_type": "datalake_alert",
            "event_payload": {
                "id": message.id,
                "source": message.source,
                "kind": message.kind,
                "over": message.over,
                "title": message.title,
                "at": message.at.isoformat(timespec="seconds"),
                **message.fields,
            },
        },
    }


class _NoRedirects(HTTPRedirectHandler):
    """A redirected POST would lose its body and still look delivered."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _unreachable(host: str | None, error: Exception) -> str:
    reason = error.reason if isinstance(error, URLError) else error
    return (
        f"web hook at {host} cannot be reached ({str(reason) or type(reason).__name__}). Correct "
        "`alerts.webhook`, or find out why it does not answer."
    )
