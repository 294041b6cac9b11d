"""What Arrow says of refusals by S3, in its own words, is understood like the rest."""

from collections.abc import Callable

import pytest
from pyarrow import fs as pafs

from eventlake.aws.refusals import Doing, aws_call, recognised
from eventlake.rules.errors import InsufficientPermissions
from tests.eventlake.aws.test_permissions import BUCKET_ARN, DATA, LAKE, NO, RAW, STAGED
from tests.support.aws.enforced import User, enforced
from tests.support.servers.aws import REGION, AwsServer


def read(fs: pafs.FileSystem) -> None:
    with fs.open_input_stream(f"{LAKE}/{RAW}") as stream:
        stream.read()


def write(fs: pafs.FileSystem, key: str) -> None:
    with fs.open_output_stream(f"{LAKE}/{key}") as stream:
        stream.write(b"x")


def listing(fs: pafs.FileSystem) -> None:
    fs.get_file_info(pafs.FileSelector(f"{LAKE}/segment-logs", allow_not_found=True))


@pytest.mark.parametrize(
    ("call", "denied", "begins", "on"),
    [
        (read, "s3:GetObject", "download objects from", f"s3:GetObject on {BUCKET_ARN}/{RAW}"),
        (
            lambda fs: write(fs, DATA),
            "s3:PutObject",
            "upload objects to",
            f"s3:PutObject on {BUCKET_ARN}/{DATA}",
        ),
        (
            lambda fs: write(fs, STAGED),
            "s3:PutObject",
            "upload staging data to",
            f"s3:PutObject on {BUCKET_ARN}/{STAGED}",
        ),
        (
            lambda fs: fs.delete_file(f"{LAKE}/{DATA}"),
            "s3:DeleteObject",
            "delete objects from",
            f"s3:DeleteObject on {BUCKET_ARN}/{DATA}",
        ),
        (listing, "s3:ListBucket", "list objects of", f"s3:ListBucket on {BUCKET_ARN}"),
        (
            lambda fs: fs.copy_file(f"{LAKE}/{DATA}", f"{LAKE}/{STAGED}"),
            "s3:PutObject",
            "upload staging data to",
            f"s3:PutObject on {BUCKET_ARN}/{STAGED}",
        ),
    ],
    ids=["read", "write", "stage", "delete", "list", "copy"],
)
def test_what_arrow_says_of_a_refusal_is_understood_without_being_asked(
    aws: AwsServer, call: Callable[[pafs.FileSystem], None], denied: str, begins: str, on: str
) -> None:
    aws.bucket(LAKE)
    for key in (DATA, RAW):
        aws.client("s3").put_object(Bucket=LAKE, Key=key, Body=b"x")
    user = User(aws, denied=[denied])
    fs = pafs.S3FileSystem(
        access_key=user.key,
        secret_key=user.secret,
        endpoint_override=aws.url.removeprefix("http://"),
        scheme="http",
        region=REGION,
    )
    with enforced(aws), pytest.raises(OSError, match="AWS Error ACCESS_DENIED") as caught:
        call(fs)
    told = str(recognised(caught.value))
    assert told.startswith(f"{NO}{begins} S3 bucket {LAKE}: {on} was refused")
    with pytest.raises(InsufficientPermissions, match=begins), aws_call(Doing.LIST, LAKE):
        raise caught.value
