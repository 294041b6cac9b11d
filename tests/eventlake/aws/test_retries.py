"""Which errors of AWS are retried, and which are raised at once."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError

from eventlake.aws.access import ATTEMPTS, AwsAccess
from eventlake.aws.refusals import aws_call
from eventlake.rules.errors import (
    InsufficientPermissions,
    InvalidSetting,
    LakeError,
    ServiceTrouble,
)
from tests.support.aws.enforced import Body
from tests.support.servers.aws import AwsServer

Answer = Callable[[Any], AWSResponse]


def answer(status: int, code: str) -> Answer:
    """In the JSON of Glue and EMR."""

    def give(request: Any) -> AWSResponse:
        body = json.dumps({"__type": code, "message": "as told"}).encode()
        headers = {"x-amzn-RequestId": "1", "Content-Type": "application/x-amz-json-1.1"}
        return AWSResponse(request.url, status, headers, Body(body))

    return give


def no_answer(error: Exception) -> Answer:
    def give(request: Any) -> AWSResponse:
        raise error

    return give


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0.0)


def asked(given: Answer, expected: type[LakeError]) -> int:
    """How often Glue is asked when it answers like this."""
    requests = []

    def send(request: Any, **_: Any) -> AWSResponse:
        requests.append(request)
        return given(request)

    glue = AwsAccess().client("glue")
    glue.meta.events.register("before-send.glue", send)
    try:
        with pytest.raises(expected), aws_call("ios_prod"):
            glue.get_database(Name="ios_prod")
    finally:
        glue.meta.events.unregister("before-send.glue", send)
    return len(requests)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (answer(400, "ThrottlingException"), ServiceTrouble),
        (answer(500, "InternalServiceException"), ServiceTrouble),
        (answer(502, "BadGateway"), ServiceTrouble),
        (answer(503, "ServiceUnavailable"), ServiceTrouble),
        (no_answer(ConnectTimeoutError(endpoint_url="http://127.0.0.1")), ServiceTrouble),
        (no_answer(ReadTimeoutError(endpoint_url="http://127.0.0.1")), ServiceTrouble),
        (answer(400, "AccessDeniedException"), InsufficientPermissions),
        (answer(403, "AccessDenied"), InsufficientPermissions),
        (answer(400, "ExpiredTokenException"), InvalidSetting),
        (answer(400, "UnrecognizedClientException"), InvalidSetting),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_only_trouble_is_retried(aws: AwsServer, given: Answer, expected: type[LakeError]) -> None:
    assert asked(given, expected) == (ATTEMPTS if expected is ServiceTrouble else 1)
