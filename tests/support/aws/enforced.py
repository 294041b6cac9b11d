"""A user on the local AWS whose permissions really count."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import boto3

from tests.support.servers.aws import REGION, AwsServer


def all_but(*denied: str) -> str:
    """A policy that allows everything but some things: `action`, or `action resource`."""
    statements = [{"Effect": "Allow", "Action": "*", "Resource": "*"}]
    for one in denied:
        action, _, resource = one.partition(" ")
        statements.append({"Effect": "Deny", "Action": action, "Resource": resource or "*"})
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


class User:
    """Somebody with keys; may do everything but what is denied."""

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


@contextmanager
def enforced(aws: AwsServer) -> Iterator[None]:
    """From here on the server looks at who asks, and for what."""
    aws.post("/moto-api/reset-auth", b"0")
    try:
        yield
    finally:
        aws.post("/moto-api/reset-auth", b"inf")
