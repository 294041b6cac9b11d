"""A lake on the local AWS, whole and healthy, for tests to break."""

from collections.abc import Callable
from typing import Any

import pytest

from eventlake.aws.access import forget_sessions
from eventlake.lake import Lake
from eventlake.settings.models import Settings
from tests.support.aws.enforced import User
from tests.support.aws.preflight import LAKE, SOURCE_ID, MakeLake
from tests.support.servers.aws import REGION, AwsServer


@pytest.fixture
def make_lake(aws: AwsServer) -> MakeLake:
    """A lake with one source in a bucket that may or may not be there."""

    def make(**more: Any) -> Lake:
        settings: dict[str, Any] = {
            "workspace_id": "P3IMS7SBDH",
            "storage": f"s3://{LAKE}",
            "region": REGION,
            "sources": [{"id": SOURCE_ID, "slug": "ios_prod"}],
        }
        return Lake.open(Settings.model_validate(settings | more))

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
