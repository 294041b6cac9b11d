"""A lake on the local AWS, whole and healthy, for tests to break."""

from collections.abc import Callable
from typing import Any

import pytest

from eventlake.aws.access import forget_sessions
from eventlake.lake import Lake
from tests.support.aws.enforced import User
from tests.support.aws.preflight import LAKE, SOURCE_ID, MakeLake
from tests.support.lakes.settings import settings_of
from tests.support.servers.aws import REGION, AwsServer


@pytest.fixture
def make_lake(aws: AwsServer) -> MakeLake:
    """A lake with one source in a bucket that may or may not be there."""

    def make(**more: Any) -> Lake:
        source = {"id": SOURCE_ID, "slug": "ios_prod"}
        fixed = {"workspace_id": "P3IMS7SBDH", "region": REGION}
        return Lake.open(settings_of(f"s3://{LAKE}", source, **fixed | more))

    return make


@pytest.fixture
def become(aws: AwsServer, monkeypatch: pytest.MonkeyPatch) -> Callable[..., User]:
    """From now on this process is somebody who may not do some things."""

    def become(*denied: str) -> User:
        user = User(aws, denied)
        for name, value in user.environment.items():
            monkeypatch.setenv(name, value)
        forget_sessions()
        return user

    return become
