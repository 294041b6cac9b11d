"""Answers of AWS as its services give them, and what the lake makes of them."""

from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest
from botocore.exceptions import ClientError

from eventlake.aws.refusals import aws_call
from eventlake.rules.errors import LakeError

CLUSTER = "j-3SXSUSDNPIS"
LAKE = "lake-bucket"
US = "arn:aws:sts::123456789012:assumed-role/dagster/datalake"


def answered(operation: str, code: str, message: str, **more: Any) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message, **more}}, operation)


class Body(BytesIO):
    """As botocore reads the body of an `AWSResponse`."""

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self.read()


def told_of(error: Exception, resource: str) -> LakeError:
    with pytest.raises(LakeError) as caught, aws_call(resource):
        raise error
    return caught.value
