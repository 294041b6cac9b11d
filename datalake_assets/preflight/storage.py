"""Checks of the storage: it exists, in the right region, with the permissions that runs need."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datalake_assets.preflight.finding import Finding, finding_of
from eventlake.aws.refusals import aws_call
from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.rules.errors import InvalidSetting, LakeError, UsageError
from eventlake.settings.models import Settings
from eventlake.storage.base import probe
from eventlake.storage.s3 import S3Storage

if TYPE_CHECKING:
    from eventlake.aws.lifecycle import Rule


WRITTEN = ("segment-stage", "segment-data", "sync_tracking_datasets")
_STAGING_STAYS = (
    "no rule of the bucket removes what failed runs leave in segment-stage/; "
    "`datalake aws lifecycle` adds one"
)


def bucket_findings(lake: Lake) -> Iterator[Finding]:
    """Check the bucket first: without it, nothing else can be checked."""
    storage = lake.storage
    assert isinstance(storage, S3Storage)
    reached = finding_of("storage", lambda: _bucket(storage))
    yield reached
    if reached.error:
        return
    for folder in WRITTEN:
        yield finding_of(folder, partial(probe, storage, folder))
    if lake.settings.on_emr:
        yield finding_of("Pipes messages", lambda: probe(storage, paths.pipes("check")))
    yield from _lifecycle_findings(storage)


def _bucket(storage: S3Storage) -> str:
    region = bucket_region(storage)
    ours = storage.access.region_name()
    if ours is None:
        raise InvalidSetting(
            "Eventlake has invalid configuration for `region`: none is set. "
            f"Set `region: {region}`, where S3 bucket {storage.bucket} is."
        )
    if region != ours:
        raise InvalidSetting(
            f"Eventlake has invalid configuration for `region`: S3 bucket {storage.bucket} is in "
            f"{region}, the settings (or the environment) say {ours}. Bucket, cluster and catalog "
            f"must be in one region: set `region: {region}`, or take a bucket in {ours}."
        )
    return f"{storage.uri} in {region}"


def bucket_region(storage: S3Storage) -> str:
    """The region of the bucket, which S3 returns also when it denies access.

    The role of infra/aws may not list the whole bucket, only the lake's folders.
    """
    from botocore.exceptions import ClientError

    answer: Any
    try:
        answer = storage.client.head_bucket(Bucket=storage.bucket)
    except ClientError as error:
        answer = error.response
        if answer["ResponseMetadata"]["HTTPStatusCode"] not in (301, 403):
            with aws_call(storage.bucket):
                raise
    region = answer["ResponseMetadata"]["HTTPHeaders"].get("x-amz-bucket-region")
    # Servers other than AWS's may not return it.
    return str(region or storage.access.region_name() or "us-east-1")


def _lifecycle_findings(storage: S3Storage) -> Iterator[Finding]:
    """What the rules of the bucket leave behind; nothing without permission to read them."""
    from eventlake.aws.lifecycle import LASTING, is_versioned, read_lifecycle

    # As `datalake aws lifecycle` does: the role of the lake need not see such rules.
    access = storage.access.without_role()
    try:
        rules = read_lifecycle(access, storage.bucket, []).present
        versioned = is_versioned(access, storage.bucket)
    except LakeError:
        return

    def expires(folder: str, action: str) -> bool:
        path = f"{storage.prefix}/{folder}/".lstrip("/")
        ours = [rule for rule in rules if path.startswith(_prefix(rule))]
        return any(action in rule for rule in ours if rule["Status"] == "Enabled")

    if not expires("segment-stage", "Expiration"):
        yield Finding("lifecycle", _STAGING_STAYS, warning=True)
    stays = [folder for folder in LASTING if not expires(folder, "NoncurrentVersionExpiration")]
    if versioned and stays:
        yield Finding(
            "versions",
            f"the bucket keeps versions, and no rule expires them in {' and '.join(stays)}: data "
            "of removed people survives there; `datalake aws lifecycle` adds such rules",
            warning=True,
        )


def _prefix(rule: "Rule") -> str:
    """The prefix of a rule; rules with further conditions match no folder."""
    chosen = rule.get("Filter", rule)
    return str(chosen.get("Prefix", "\0" if chosen else ""))


def folder_finding(settings: Settings) -> Finding:
    def check() -> str:
        folder = Path(settings.storage_uri)
        standing = next(place for place in (folder, *folder.parents) if place.exists())
        if not standing.is_dir():
            raise UsageError(f"{standing} is a file. Set `storage` to a folder.")
        if not os.access(standing, os.R_OK | os.W_OK | os.X_OK):
            raise UsageError(
                f"{standing} cannot be read and written by this user. Give it the rights (`chmod "
                "u+rwx`), or set `storage` to another folder."
            )
        return str(folder)

    return finding_of("storage", check)
