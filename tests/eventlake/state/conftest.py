"""The storage of a lake in a folder and in a bucket."""

from pathlib import Path

import pytest

from eventlake.storage import LocalStorage, Storage
from eventlake.storage.s3 import S3Storage
from tests.support.servers.aws import AwsServer


@pytest.fixture(params=["folder", "bucket"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "folder":
        return LocalStorage(str(tmp_path))
    server: AwsServer = request.getfixturevalue("aws")
    return S3Storage(f"s3://{server.bucket()}")
