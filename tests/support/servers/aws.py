"""An AWS of our own for tests: moto on 127.0.0.1, which Spark's workers and subprocesses reach."""

import logging
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.request import Request, urlopen

from moto import backends
from moto.moto_server.werkzeug_app import MotoRequestHandler
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer

from eventlake.aws.access import AwsAccess, forget_sessions

ACCOUNT = "123456789012"
REGION = "eu-west-1"
SECRET = "own-secret-of-the-test-that-must-show-nowhere"


@dataclass(frozen=True)
class AwsServer:
    """A running server and what a process must know to take it for AWS."""

    url: str

    @property
    def environment(self) -> Mapping[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "AKIATESTSOWNKEY00000",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    def client(self, service: str) -> Any:
        """A client that assumes no role, for what a test prepares and looks up."""
        return AwsAccess().client(service)

    def bucket(self, name: str = "lake-bucket", region: str = REGION) -> str:
        """A new bucket's name."""
        AwsAccess(region).client("s3").create_bucket(
            Bucket=name, CreateBucketConfiguration={"LocationConstraint": region}
        )
        return name

    def fill(self, bucket: str, keys: Iterable[str]) -> None:
        """Objects without content, too many to be sent one by one."""
        self.put(bucket, dict.fromkeys(keys, b""))

    def content(self, bucket: str, prefix: str = "") -> dict[str, bytes]:
        """The objects below a prefix, without a request for each."""
        keys = s3_backends[ACCOUNT]["aws"].get_bucket(bucket).keys
        return {key: keys[key].value for key in list(keys) if key.startswith(prefix)}

    def put(self, bucket: str, objects: Mapping[str, bytes]) -> None:
        """The same the other way round."""
        backend = s3_backends[ACCOUNT]["aws"]
        for key, value in objects.items():
            backend.put_object(bucket, key, value)

    def forget(self, bucket: str, prefix: str) -> None:
        """As if nothing had ever been below a prefix."""
        backend = s3_backends[ACCOUNT]["aws"]
        for key in self.content(bucket, prefix):
            backend.delete_object(bucket, key)

    def role(self, name: str = "datalake", external_id: str = "P3IMS7SBDH") -> str:
        """A new role's ARN; only callers with the external id may assume it."""
        trust = (
            '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"*"},'
            '"Action":"sts:AssumeRole","Condition":{"StringEquals":'
            f'{{"sts:ExternalId":"{external_id}"}}}}}}]}}'
        )
        made = self.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=trust)
        arn: str = made["Role"]["Arn"]
        return arn

    def reset(self) -> None:
        """Empty: no bucket, table, role or cluster is left."""
        self.post("/moto-api/reset")

    def post(self, path: str, body: bytes = b"") -> None:
        plain = {"Content-Type": "text/plain"}  # else the server takes the body for a form
        request = Request(self.url + path, data=body, headers=plain, method="POST")
        with urlopen(request, timeout=30) as answer:
            answer.read()


class _OneWriteAtATime:
    """S3 decides a conditional write at one moment; moto looks first and writes later."""

    def __init__(self, app: Any) -> None:
        self._app, self._lock = app, threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        if environ["REQUEST_METHOD"] != "PUT":
            return self._app(environ, start_response)
        with self._lock:
            return self._app(environ, start_response)


class _KeepsConnections(MotoRequestHandler):
    """As S3 does: a connection and a thread for each request cost more than most answers."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are sent apart, and are not to wait


@contextmanager
def running_server() -> Iterator[AwsServer]:
    # At each request moto looks through its own folders for what it can do.
    modules = list(backends.list_of_moto_modules())
    backends.list_of_moto_modules = lambda: modules
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    server._server.RequestHandlerClass = _KeepsConnections  # type: ignore[union-attr]
    server._server.app = _OneWriteAtATime(server._server.app)  # type: ignore[union-attr]
    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # else each request is a line
    try:
        host, port = server.get_host_and_port()
        yield AwsServer(f"http://{host}:{port}")
    finally:
        server.stop()


@contextmanager
def fresh_sessions() -> Iterator[None]:
    """No credentials or clients of an earlier environment, nor any left for a later one."""
    forget_sessions()
    try:
        yield
    finally:
        forget_sessions()
