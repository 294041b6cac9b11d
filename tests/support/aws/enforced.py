"""Enforced and recorded AWS permissions."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSRequest
from botocore.exceptions import ClientError
from moto.iam.access_control import IAMRequestBase

from eventlake.aws.refusals import aws_call
from eventlake.rules.errors import LakeError
from tests.support.servers.aws import REGION, AwsServer


def all_but(*denied: str) -> str:
    """A policy that allows everything but some things: `action`, or `action resource`."""
    statements = [{"Effect": "Allow", "Action": "*", "Resource": "*"}]
    for one in denied:
        action, _, resource = one.partition(" ")
        statements.append({"Effect": "Deny", "Action": action, "Resource": resource or "*"})
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


class User:
    """A user with keys and all permissions except the denied ones."""

    def __init__(self, aws: AwsServer, denied: Sequence[str], name: str = "dagster") -> None:
        iam = aws.client("iam")
        self.arn: str = iam.create_user(UserName=name)["User"]["Arn"]
        keys = iam.create_access_key(UserName=name)["AccessKey"]
        self.key, self.secret = keys["AccessKeyId"], keys["SecretAccessKey"]
        iam.put_user_policy(UserName=name, PolicyName="own", PolicyDocument=all_but(*denied))

    @property
    def environment(self) -> dict[str, str]:
        return {"AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": self.secret}

    def client(self, service: str) -> Any:
        """A client of this user, in the environment of the server."""
        return boto3.client(
            service,
            region_name=REGION,
            aws_access_key_id=self.key,
            aws_secret_access_key=self.secret,
        )


Become = Callable[..., User]
"""Runs this process with the keys of a new user who lacks the given permissions."""


@contextmanager
def enforced(aws: AwsServer) -> Iterator[None]:
    """The server checks permissions until the block ends."""
    aws.post("/moto-api/reset-auth", b"0")
    try:
        with _bodies_of_requests_without_one():
            yield
    finally:
        aws.post("/moto-api/reset-auth", b"inf")


@contextmanager
def _bodies_of_requests_without_one() -> Iterator[None]:
    """moto takes parameters in the path of a GET for its body, and then refuses its signature."""
    known = IAMRequestBase._create_aws_request

    def create(self: IAMRequestBase) -> AWSRequest:
        data, self._data = self._data, {} if self._method in ("GET", "DELETE") else self._data
        try:
            return known(self)
        finally:
            self._data = data

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IAMRequestBase, "_create_aws_request", create)
        yield


CLUSTER = "j-3SXSUSDNPIS"
LAKE = "lake-bucket"
US = "arn:aws:sts::123456789012:assumed-role/dagster/datalake"


def answered(operation: str, code: str, message: str, **more: Any) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message, **more}}, operation)


class Body(BytesIO):
    """As botocore reads the body of an `AWSResponse`."""

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self.read()


def lake_error_of(error: Exception, resource: str) -> LakeError:
    with pytest.raises(LakeError) as caught, aws_call(resource):
        raise error
    return caught.value


Document = Mapping[str, Any]


def actions(documents: Iterable[Document]) -> set[str]:
    return {action for said in _statements(documents) for action in _listed(said["Action"])}


def allows(documents: Iterable[Document], action: str, resource: str, **context: str) -> bool:
    """Whether these policies allow the action; keys of the context have `__` for `:`."""
    about = {key.replace("__", ":").replace("_S_", "/"): value for key, value in context.items()}
    return any(
        any(_like(pattern, action) for pattern in _listed(said["Action"]))
        and any(_like(pattern, resource) for pattern in _listed(said["Resource"]))
        and _holds(said.get("Condition", {}), about)
        for said in _statements(documents)
    )


def _statements(documents: Iterable[Document]) -> Iterator[Document]:
    for document in documents:
        for statement in document["Statement"]:
            assert statement["Effect"] == "Allow"
            assert not statement.keys() & {"NotAction", "NotResource", "NotPrincipal"}
            yield statement


def _holds(conditions: Mapping[str, Mapping[str, Any]], context: Mapping[str, str]) -> bool:
    """All conditions, each with any of its values; of what is not known none holds."""
    return all(
        key in context and any(_compare(operator, value, context[key]) for value in _listed(values))
        for operator, tests in conditions.items()
        for key, values in tests.items()
    )


def _compare(operator: str, value: str, seen: str) -> bool:
    equal = {"StringEquals": value == seen, "StringLike": _like(value, seen)}
    return (equal | {"ArnEquals": _like(value, seen), "ArnLike": _like(value, seen)})[operator]


def _like(pattern: str, text: str) -> bool:
    parts = (".*" if char == "*" else "." if char == "?" else re.escape(char) for char in pattern)
    return re.fullmatch("".join(parts), text) is not None


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
