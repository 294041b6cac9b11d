"""A lake on the local AWS, whole and healthy, for tests to break."""

from typing import Any

import pytest

from eventlake.lake import Lake
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
