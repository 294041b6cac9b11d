"""The same storage in a folder, in a bucket, and below a prefix of a bucket."""

from pathlib import Path
from typing import Any

import pytest

from eventlake.storage import LocalStorage, Storage
from eventlake.storage.s3 import S3Storage
from tests.support.servers.aws import AwsServer


@pytest.fixture
def s3(aws: AwsServer) -> S3Storage:
    """A prefix of a bucket in which other things lie, too."""
    aws.bucket()
    for key in ("lake", "lake/", "lake-other/a", "a", "zzz/a"):
        aws.client("s3").put_object(Bucket="lake-bucket", Key=key, Body=b"not ours")
    return S3Storage("s3://lake-bucket/lake")


@pytest.fixture(params=["folder", "bucket", "prefix"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "folder":
        return LocalStorage(str(tmp_path))
    if request.param == "prefix":
        prefixed: S3Storage = request.getfixturevalue("s3")
        return prefixed
    server: Any = request.getfixturevalue("aws")
    return S3Storage(f"s3://{server.bucket()}")
