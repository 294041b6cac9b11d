"""Errors of AWS as errors of the lake: denied permissions, wrong settings, unavailable services."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from eventlake.aws import answers
from eventlake.aws.answers import Answer, answer_of
from eventlake.aws.permissions import (
    OPERATIONS,
    SERVICE_NAMES,
    Operation,
    bucket_and_key,
    insufficient,
)
from eventlake.rules.errors import InvalidSetting, LakeError, ServiceTrouble

if TYPE_CHECKING:
    from eventlake.aws.access import AwsAccess


def role_refused(
    answer: Answer, resource: str, external_id: str | None, is_set: bool
) -> LakeError | None:
    """Why a role could not be assumed; STS returns one error for many causes.

    `external_id=None` with `is_set=True` means that the external id of the call is unknown.
    """
    role = answer.resource or (resource if resource.startswith("arn:") else "of `iam_role_arn`")
    if answer.plain_code in ("validationerror", "malformedpolicydocument"):
        return InvalidSetting(
            "Eventlake has invalid configuration for `iam_role_arn`: STS cannot use role "
            f"{role}: {answer.said}"
        )
    if answer.plain_code not in answers.DENIED:
        return None
    if "identity-based policy" in answer.said or "session policy" in answer.said:
        return insufficient(answer, OPERATIONS["AssumeRole"], resource)
    principal = answer.principal or "the caller"
    problem = (
        "External ID is invalid. Please ensure the external ID in the IAM role used to connect to "
        "your Data Lake (`sts:ExternalId` in its trust policy) matches `external_id`"
        if is_set
        else "External ID is not set. Please ensure that the IAM role used to connect to your Data "
        "Lake has the workspace ID in the list of external IDs (`sts:ExternalId`)"
    )
    return InvalidSetting(
        f"{problem}: sts:AssumeRole on {role}{_sent(external_id, is_set)} was refused to "
        f"{principal}. AWS does not say why: also ensure that the trust policy of the role names "
        f"{principal} as principal, and that the role of `iam_role_arn` exists."
    )


def _sent(external_id: str | None, is_set: bool) -> str:
    if external_id is None:
        return "" if is_set else " without an external ID"
    default = "" if is_set else ", that of the workspace,"
    return f" with external ID {external_id!r}{default}"


_ENDPOINT = re.compile(
    r"\b(s3)://|https://(?:[\w-]+\.)*?(s3|elasticmapreduce|emr-serverless|glue|sts|sns)[.-]"
)
_CLUSTER = re.compile(r"j-[A-Z0-9]+")
_ACCOUNT = re.compile(r"arn:aws[a-z-]*:\w+:[\w-]*:(\d{12}):")
_REGIONS = re.compile(
    r"region is '(?P<asked>[\w-]+)' while the bucket is located in '(?P<right>[\w-]+)'"
    r"|expecting '(?P<expected>[\w-]+)'|s3[.-](?P<endpoint>[a-z]{2,}(?:-[a-z]+)+-\d)\.amazonaws"
)


def wrong_setting(
    answer: Answer, operation: Operation | None, resource: str
) -> InvalidSetting | None:
    """The error for the setting to correct, or None if no setting is the cause."""
    code = answer.plain_code
    if wrong := _credentials(answer):
        return wrong
    bucket, _ = bucket_and_key(answer, resource)
    if code in answers.OTHER_REGION:
        return _region(answer, bucket)
    if code in answers.NO_REGION:
        return _invalid("region", "none is set. Set `region` to the region of the bucket.")
    if code in answers.NO_BUCKET or (code == "404" and answer.operation == "HeadBucket"):
        return _invalid(
            "storage",
            f"S3 bucket {bucket} does not exist. Correct the name in `storage` or `raw`, or create "
            "the bucket in the region of the settings.",
        )
    if code == "400" and answer.operation.startswith("Head"):
        # The response to HEAD has no body.
        return InvalidSetting(
            f"Eventlake has invalid configuration for `region` or AWS credentials: S3 bucket "
            f"{bucket} refused {answer.operation} without a word, as it does for another region "
            "and for expired keys. Set `region` to the region of the bucket, and log in again."
        )
    if operation is not None and operation.service == "elasticmapreduce":
        return _cluster(answer, resource)
    if operation is not None and operation.service == "emr-serverless":
        return _application(answer, resource)
    if operation is not None and operation.service == "glue":
        return _catalog(answer)
    return None


def _invalid(setting: str, problem: str) -> InvalidSetting:
    return InvalidSetting(f"Eventlake has invalid configuration for `{setting}`: {problem}")


def _credentials(answer: Answer) -> InvalidSetting | None:
    code, said = answer.plain_code, f" ({answer.code}: {answer.said})" if answer.said else ""
    if code in answers.NO_CREDENTIALS:
        problem = (
            f"none were found{said}. Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or run where a role is attached to the machine."
        )
    elif code in answers.SKEWED or "signature expired" in answer.said.lower():
        problem = f"the clock of this machine is wrong{said}. Set it by NTP."
    elif code in answers.EXPIRED:
        problem = f"they have expired{said}. Log in again, or replace the session token."
    elif code in answers.WRONG_KEYS:
        problem = (
            f"AWS does not accept the keys{said}. Correct AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or the profile that AWS_PROFILE names."
        )
    else:
        return None
    return InvalidSetting(f"Eventlake has invalid AWS credentials: {problem}")


def _region(answer: Answer, bucket: str) -> InvalidSetting:
    found = _REGIONS.search(answer.said)
    right = found["right"] or found["expected"] or found["endpoint"] if found else None
    subject = f"S3 bucket {bucket}" if bucket else "it"
    remedy = f"Set `region: {right}`." if right else "Set `region` to the region of the bucket."
    return _invalid("region", f"{subject} is not in the region that was asked. {remedy}")


def _cluster(answer: Answer, resource: str) -> InvalidSetting | None:
    found = _CLUSTER.search(resource) or _CLUSTER.search(answer.said)
    cluster = found[0] if found else "of the settings"
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


def _application(answer: Answer, resource: str) -> InvalidSetting | None:
    if answer.plain_code == "resourcenotfound":
        return _invalid(
            "emr_serverless_application_id",
            f"there is no EMR Serverless application {resource} in this account and region. Set "
            "the id of a Spark application, or create one.",
        )
    if "terminated" in answer.said:
        return _invalid(
            "emr_serverless_application_id",
            f"EMR Serverless application {resource} has been deleted. Create another, and set "
            "its id.",
        )
    if "pass role is not allowed" in answer.said or "execution role" in answer.said.lower():
        return _invalid(
            "execution_role_arn",
            f"EMR Serverless cannot use the role ({answer.said.rstrip('.')}). Its trust policy "
            "must name emr-serverless.amazonaws.com, and it must be in the account of the "
            "application.",
        )
    return None


def _catalog(answer: Answer) -> InvalidSetting | None:
    if answer.plain_code == "entitynotfound" and answer.said.startswith("Catalog "):
        return _invalid(
            "glue_catalog_id",
            f"Glue has no such catalog ({answer.said}). Set the number of the account, or leave "
            "it out.",
        )
    if answer.plain_code not in answers.DENIED:
        return None
    ours, theirs = (_ACCOUNT.match(arn or "") for arn in (answer.principal, answer.resource))
    if ours is None or theirs is None or ours[1] == theirs[1]:
        return None
    return _invalid(
        "glue_catalog_id",
        f"{theirs[1]} is not the account that we are in, which is {ours[1]}; "
        f"{answer.action} on {answer.resource} was refused. Set `glue_catalog_id: '{ours[1]}'`, "
        "or leave it out.",
    )


@contextmanager
def aws_call(resource: str) -> Iterator[None]:
    """Convert errors of AWS within the block to errors of the lake.

    `resource` is what the call is about: `bucket/key` or an `s3://` URI, a cluster id, a
    `database` or `database.table`, or an ARN. Expected errors pass through unchanged: not found,
    already exists, modified concurrently.
    """
    try:
        yield
    except LakeError:
        raise
    except Exception as error:
        answer = answer_of(error)
        if answer is None or (known := _lake_error(answer, resource)) is None:
            raise
        raise known from error


@contextmanager
def role_call(access: "AwsAccess") -> Iterator[None]:
    """The same for calls that assume a role."""
    role = access.role_arn or ""
    try:
        with aws_call(role):
            yield
    except LakeError as error:
        answer = answer_of(error.__cause__) if error.__cause__ else None
        is_set = access.external_id is not None and access.external_id_is_set
        if answer and (refused := role_refused(answer, role, access.external_id, is_set)):
            raise refused from error.__cause__
        raise


def aws_error(error: BaseException) -> LakeError | None:
    """The lake error for a response of AWS that an exception is or contains, if any."""
    answer = answer_of(error)
    return None if answer is None else _lake_error(answer, "")


def _lake_error(answer: Answer, resource: str) -> LakeError | None:
    if answer.operation == "AssumeRole" and (
        refused := role_refused(answer, resource, None, is_set=True)
    ):
        return refused
    operation = OPERATIONS.get(answer.operation)
    if wrong := wrong_setting(answer, operation, resource):
        return wrong
    if answer.plain_code in answers.DENIED and operation is not None:
        return insufficient(answer, operation, resource)
    if answer.plain_code in answers.TROUBLE or answer.status >= 500:
        return _trouble(answer, _service_name(answer, operation, resource))
    return None


def _service_name(answer: Answer, operation: Operation | None, resource: str) -> str:
    """The service; connection errors have no operation, but mostly the URL of an endpoint."""
    if operation is not None:
        return operation.service_name
    found = _ENDPOINT.search(f"{resource} {answer.said}")
    return SERVICE_NAMES[found[1] or found[2]] if found else "AWS"


def _trouble(answer: Answer, service: str) -> ServiceTrouble:
    call = f" to {answer.operation}" if answer.operation else ""
    said = f": {answer.code}: {answer.said}" if answer.said else f": {answer.code}"
    return ServiceTrouble(
        f"{service} did not answer as it should{call}, also after retries{said[:400]}. "
        "There is nothing to correct; the next sync tries again."
    )
