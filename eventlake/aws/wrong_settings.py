"""Settings that AWS's answers show to be wrong."""

import re

from eventlake.aws import causes
from eventlake.aws.answers import Answer
from eventlake.aws.doing import Doing
from eventlake.aws.permissions import place_in_s3
from eventlake.rules.errors import InvalidSetting

_CLUSTER = re.compile(r"j-[A-Z0-9]+")
_ACCOUNT = re.compile(r"arn:aws[a-z-]*:\w+:[\w-]*:(\d{12}):")
_REGIONS = re.compile(
    r"region is '(?P<asked>[\w-]+)' while the bucket is located in '(?P<right>[\w-]+)'"
    r"|expecting '(?P<expected>[\w-]+)'|s3[.-](?P<endpoint>[a-z]{2,}(?:-[a-z]+)+-\d)\.amazonaws"
)


def wrong_setting(answer: Answer, doing: Doing | None, resource: str) -> InvalidSetting | None:
    """The setting to correct, or None where no setting is to blame."""
    code = answer.plain_code
    if told := _credentials(answer):
        return told
    bucket, _ = place_in_s3(answer, resource)
    if code in causes.OTHER_REGION:
        return _region(answer, bucket)
    if code in causes.NO_REGION:
        return _invalid("region", "none is set. Set `region` to the region of the bucket.")
    if code in causes.NO_BUCKET or (code == "404" and answer.operation == "HeadBucket"):
        return _invalid(
            "storage",
            f"S3 bucket {bucket} does not exist. Correct the name in `storage`, or create the "
            "bucket in the region of the settings.",
        )
    if code == "400" and answer.operation.startswith("Head"):
        # To HEAD there is no answer in words.
        return InvalidSetting(
            f"Data lake has invalid configuration for `region` or AWS credentials: S3 bucket "
            f"{bucket} refused {answer.operation} without a word, as it does for another region "
            "and for expired keys. Set `region` to the region of the bucket, and log in again."
        )
    if doing is not None and doing.service == "elasticmapreduce":
        return _cluster(answer, resource)
    if doing is not None and doing.service == "glue":
        return _catalog(answer)
    return None


def _invalid(setting: str, told: str) -> InvalidSetting:
    return InvalidSetting(f"Data lake has invalid configuration for `{setting}`: {told}")


def _credentials(answer: Answer) -> InvalidSetting | None:
    code, said = answer.plain_code, f" ({answer.code}: {answer.said})" if answer.said else ""
    if code in causes.NO_CREDENTIALS:
        told = (
            f"none were found{said}. Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or run where a role is attached to the machine."
        )
    elif code in causes.SKEWED or "signature expired" in answer.said.lower():
        told = f"the clock of this machine is wrong{said}. Set it by NTP."
    elif code in causes.EXPIRED:
        told = f"they have expired{said}. Log in again, or replace the session token."
    elif code in causes.WRONG_KEYS:
        told = (
            f"AWS does not accept the keys{said}. Correct AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or the profile that AWS_PROFILE names."
        )
    else:
        return None
    return InvalidSetting(f"Data lake has invalid AWS credentials: {told}")


def _region(answer: Answer, bucket: str) -> InvalidSetting:
    found = _REGIONS.search(answer.said)
    right = found["right"] or found["expected"] or found["endpoint"] if found else None
    place = f"S3 bucket {bucket}" if bucket else "it"
    remedy = f"Set `region: {right}`." if right else "Set `region` to the region of the bucket."
    return _invalid("region", f"{place} is not in the region that was asked. {remedy}")


def _cluster(answer: Answer, resource: str) -> InvalidSetting | None:
    told = _CLUSTER.search(resource) or _CLUSTER.search(answer.said)
    cluster = told[0] if told else "of the settings"
    if "is not valid" in answer.said or "does not exist" in answer.said:
        return _invalid(
            "emr_cluster_id",
            f"there is no EMR cluster {cluster} in this account and region. Set the id of a "
            "cluster that runs, or create one.",
        )
    if "terminated" in answer.said or "shutting down" in answer.said:
        return _invalid(
            "emr_cluster_id",
            f"EMR cluster {cluster} has been terminated. Create another, and set its id.",
        )
    return None


def _catalog(answer: Answer) -> InvalidSetting | None:
    if answer.plain_code == "entitynotfound" and answer.said.startswith("Catalog "):
        return _invalid(
            "glue_catalog_id",
            f"Glue has no such catalog ({answer.said}). Set the number of the account, or leave "
            "it out.",
        )
    if answer.plain_code not in causes.DENIED:
        return None
    ours, theirs = (_ACCOUNT.match(arn or "") for arn in (answer.who, answer.resource))
    if ours is None or theirs is None or ours[1] == theirs[1]:
        return None
    return _invalid(
        "glue_catalog_id",
        f"{theirs[1]} is not the account that we are in, which is {ours[1]}; "
        f"{answer.action} on {answer.resource} was refused. Set `glue_catalog_id: '{ours[1]}'`, "
        "or leave it out.",
    )
