"""The same storage in a folder, in buckets and containers, and below prefixes of these."""

from pathlib import Path

import pytest

from eventlake.storage import LocalStorage, Storage
from eventlake.storage.adls import AdlsStorage
from eventlake.storage.s3 import S3Storage
from tests.support.servers.aws import AwsServer
from tests.support.servers.azurite import ACCOUNT, Azurite


@pytest.fixture
def s3(aws: AwsServer) -> S3Storage:
    """A prefix of a bucket in which other things lie, too."""
    aws.bucket()
    for key in ("lake", "lake/", "lake-other/a", "a", "zzz/a"):
        aws.client("s3").put_object(Bucket="lake-bucket", Key=key, Body=b"not ours")
    return S3Storage("s3://lake-bucket/lake")


@pytest.fixture
def adls(azurite: Azurite) -> AdlsStorage:
    """A prefix of a container in which other things lie, too."""
    container = azurite.container()
    for name in ("lake", "lake-other/a", "a", "zzz/a"):
        azurite.client(container).upload_blob(name, b"not ours")
    return AdlsStorage(f"abfss://{container}@{ACCOUNT}/lake")


@pytest.fixture(
    params=["folder", "bucket", "bucket and prefix", "container", "container and prefix"]
)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "folder":
        return LocalStorage(str(tmp_path))
    if request.param.endswith("prefix"):
        name = "s3" if request.param.startswith("bucket") else "adls"
        prefixed: Storage = request.getfixturevalue(name)
        return prefixed
    if request.param == "container":
        azurite: Azurite = request.getfixturevalue("azurite")
        return AdlsStorage(f"abfss://{azurite.container()}@{ACCOUNT}")
    server: AwsServer = request.getfixturevalue("aws")
    return S3Storage(f"s3://{server.bucket()}")
