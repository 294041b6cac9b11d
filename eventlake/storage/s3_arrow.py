"""A bucket as Arrow sees it, always with keys that are good for a while."""

import os
import threading
from typing import Any
from urllib.parse import urlsplit

from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import ClientError
from pyarrow import fs as pafs

from eventlake.aws.access import ATTEMPTS, AwsAccess

_lock = threading.Lock()
_made: dict[tuple[int, AwsAccess, str, str], tuple[ReadOnlyCredentials, pafs.FileSystem]] = {}


def arrow_files(access: AwsAccess, bucket: str) -> pafs.FileSystem:
    """Arrow's file system for a bucket; another one as soon as the keys have been renewed."""
    keys = access.credentials()
    client = access.client("s3")
    endpoint: str = client.meta.endpoint_url
    place = (os.getpid(), access, bucket, endpoint)
    with _lock:
        known = _made.get(place)
        if known is None or known[0] != keys:
            _made[place] = known = (keys, _open(client, bucket, endpoint, keys))
        return known[1]


def _open(client: Any, bucket: str, endpoint: str, keys: ReadOnlyCredentials) -> pafs.FileSystem:
    url = urlsplit(endpoint)
    own = {"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"} & os.environ.keys()
    return pafs.S3FileSystem(
        access_key=keys.access_key,
        secret_key=keys.secret_key,
        session_token=keys.token,
        region=bucket_region(client, bucket),
        scheme=url.scheme,
        endpoint_override=url.netloc if own or "amazonaws.com" not in url.netloc else None,
        connect_timeout=10,
        request_timeout=60,
        retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=_attempts()),
    )


def _attempts() -> int:
    return int(os.environ.get("AWS_MAX_ATTEMPTS", ATTEMPTS))


def bucket_region(client: Any, bucket: str) -> str | None:
    """Where the bucket is, whatever the settings say: Arrow follows no redirections."""
    try:
        answer = client.head_bucket(Bucket=bucket)
    except ClientError as error:
        answer = error.response
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    region: str | None = headers.get("x-amz-bucket-region") or client.meta.region_name
    return None if region == "aws-global" else region
