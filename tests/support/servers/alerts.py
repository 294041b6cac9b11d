"""What takes messages in tests: a mail server with TLS and a web hook, both real, on 127.0.0.1."""

import asyncio
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP as Server
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword, Session

from tests.support.servers.aws import AwsServer

USER, PASSWORD = "datalake", "own-password-of-the-test"


@dataclass
class MailBox:
    """A mail server; takes mail for every address but `nobody@…`, after a login."""

    port: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    refuses: bool = False

    async def handle_RCPT(
        self, server: Server, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address.startswith("nobody@"):
            return "550 no such user here"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Server, session: Session, envelope: Envelope) -> str:
        if self.refuses:
            return "451 try again later"
        content = envelope.original_content or b""
        mail = message_from_bytes(content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        assert server.transport is not None
        assert session.ssl is not None or server.transport.get_extra_info("ssl_object")
        self.mails.append(mail)
        return "250 OK"

    @property
    def subjects(self) -> list[str]:
        return [str(mail["Subject"]) for mail in self.mails]


def _login(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
    right = isinstance(data, LoginPassword) and data.password == PASSWORD.encode()
    return AuthResult(success=right and data.login == USER.encode(), handled=False)


class _AnyPort(Controller):
    """Takes a port that is free, and tries itself there."""

    def _trigger_server(self) -> None:
        assert isinstance(self.server, asyncio.Server)
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@contextmanager
def mail_server(authority: trustme.CA, tls: str = "starttls") -> Iterator[MailBox]:
    """With `starttls` TLS begins when asked for, with `tls` at once."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    box = MailBox()
    begins: dict[str, Any] = {"tls_context": context, "require_starttls": True}
    controller = _AnyPort(
        box,
        hostname="127.0.0.1",
        port=0,
        ssl_context=context if tls == "tls" else None,
        authenticator=_login,
        auth_required=tls == "starttls",
        auth_require_tls=tls == "starttls",
        **(begins if tls == "starttls" else {}),
    )
    controller.start()
    try:
        box.port = controller.port
        yield box
    finally:
        controller.stop()


@dataclass
class Hook:
    """A web hook; answers with `status`."""

    url: str = ""
    posts: list[dict[str, Any]] = field(default_factory=list)
    status: int = 200

    @property
    def titles(self) -> list[str]:
        return [post["metadata"]["event_payload"]["title"] for post in self.posts]


@contextmanager
def web_hook(authority: trustme.CA) -> Iterator[Hook]:
    hook = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if hook.status == 200:
                assert self.headers["Content-Type"].startswith("application/json")
                hook.posts.append(json.loads(body))
            self.send_response(hook.status)
            if hook.status in (301, 302):
                self.send_header("Location", "/elsewhere")
            self.end_headers()
            self.wfile.write(b"ok" if hook.status == 200 else b"invalid_token")

        do_GET = do_POST

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        hook.url = f"https://localhost:{server.server_address[1]}/services/own-secret-of-the-hook"
        yield hook
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def subscribed(aws: AwsServer) -> tuple[str, str]:
    """A topic, and a queue that is subscribed to it."""
    topic: str = aws.client("sns").create_topic(Name="alerts")["TopicArn"]
    sqs = aws.client("sqs")
    queue: str = sqs.create_queue(QueueName="heard")["QueueUrl"]
    attributes = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
    arn = attributes["Attributes"]["QueueArn"]
    raw = {"RawMessageDelivery": "true"}
    aws.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes=raw)
    return topic, queue
