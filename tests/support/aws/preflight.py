"""A healthy lake on the local AWS, for the tests of the preflight checks."""

import gzip
from collections.abc import Callable, Iterable

from datalake_assets.preflight import Finding
from eventlake.lake import Lake
from tests.support.servers.aws import AwsServer

LAKE = "lake-bucket"
SOURCE_ID = "9IP56Shn6"
OCTOBER_1 = "1790812800000"  # its day folder in the archive
MakeLake = Callable[..., Lake]


def put_raw_file(aws: AwsServer, folder: str = OCTOBER_1, source: str = SOURCE_ID) -> None:
    key = f"segment-logs/{source}/{folder}/a.gz"
    aws.client("s3").put_object(Bucket=LAKE, Key=key, Body=gzip.compress(b"{}"))


def signs(found: Iterable[Finding]) -> dict[str, str]:
    """What was looked at, and its sign."""
    return {finding.what: finding.sign for finding in found}


def shown(found: Iterable[Finding]) -> dict[str, str]:
    """What was looked at, with sign and message."""
    return {finding.what: f"{finding.sign} {finding.message}" for finding in found}


def only_problem(found: Iterable[Finding], what: str) -> str:
    """The message of the one finding that is not in order."""
    [wrong] = [finding for finding in found if finding.sign != "✓"]
    assert wrong.what == what
    return wrong.message
