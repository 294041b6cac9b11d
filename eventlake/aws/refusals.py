"""What AWS refuses, told as errors of the lake: what was refused, on what, what to grant."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from eventlake.aws import answers
from eventlake.aws.answers import Answer, answer_of
from eventlake.aws.permissions import Doing, doing_of, insufficient, place_in_s3
from eventlake.rules.errors import InvalidSetting, LakeError, ServiceTrouble, told_in

if TYPE_CHECKING:
    from eventlake.aws.access import AwsAccess


def role_refused(
    answer: Answer, resource: str, external_id: str | None, is_set: bool
) -> LakeError | None:
    """Why a role could not be assumed, as far as STS tells: it has one answer for many causes.

    Without an external id that is said to be set, it is not known which was sent.
    """
    role = answer.resource or (resource if resource.startswith("arn:") else "of `iam_role_arn`")
    if answer.plain_code in ("validationerror", "malformedpolicydocument"):
        return InvalidSetting(
            "Data lake has invalid configuration for `iam_role_arn`: STS cannot use role "
            f"{role}: {answer.said}"
        )
    if answer.plain_code not in answers.DENIED:
        return None
    if "identity-based policy" in answer.said or "session policy" in answer.said:
        return insufficient(answer, Doing.ASSUME_ROLE, resource)
    who = answer.who or "whoever runs this"
    wrong = "invalid" if is_set else "not set"
    return InvalidSetting(
        f"External ID is {wrong}, or the role does not trust us: sts:AssumeRole on {role}"
        f"{_sent(external_id, is_set)} was refused to {who}; AWS does not tell which it is. Add "
        "the external ID to the list `sts:ExternalId` in the trust policy of the role, or correct "
        f"`external_id`; and see that this policy names {who} as principal, and that the role of "
        "`iam_role_arn` exists."
    )


def _sent(external_id: str | None, is_set: bool) -> str:
    if external_id is None:
        return "" if is_set else " without an external ID"
    default = "" if is_set else ", that of the workspace,"
    return f" with external ID {external_id!r}{default}"


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
    if code in answers.OTHER_REGION:
        return _region(answer, bucket)
    if code in answers.NO_REGION:
        return _invalid("region", "none is set. Set `region` to the region of the bucket.")
    if code in answers.NO_BUCKET or (code == "404" and answer.operation == "HeadBucket"):
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
    if code in answers.NO_CREDENTIALS:
        told = (
            f"none were found{said}. Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or run where a role is attached to the machine."
        )
    elif code in answers.SKEWED or "signature expired" in answer.said.lower():
        told = f"the clock of this machine is wrong{said}. Set it by NTP."
    elif code in answers.EXPIRED:
        told = f"they have expired{said}. Log in again, or replace the session token."
    elif code in answers.WRONG_KEYS:
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
    if answer.plain_code not in answers.DENIED:
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


__all__ = ["Doing", "aws_call", "recognised", "role_call"]


@contextmanager
def aws_call(doing: Doing, resource: str) -> Iterator[None]:
    """Within it, refusals and failures of AWS come as errors of the lake.

    `resource` is what the call is about: `bucket/key` (or an `s3://` URI), a cluster's id, a
    `database` or `database.table`, a role's ARN. Answers that are part of the work come through
    as they are: nothing there, there already, changed meanwhile.
    """
    try:
        yield
    except LakeError:
        raise
    except Exception as error:
        answer = answer_of(error)
        if answer is None or (told := _told(answer, doing, resource)) is None:
            raise
        raise told from error


@contextmanager
def role_call(access: "AwsAccess") -> Iterator[None]:
    """The same where a role is assumed."""
    role = access.role_arn or ""
    try:
        with aws_call(Doing.ASSUME_ROLE, role):
            yield
    except LakeError as error:
        answer = answer_of(error.__cause__) if error.__cause__ else None
        is_set = access.external_id is not None and access.external_id_is_set
        if answer and (told := role_refused(answer, role, access.external_id, is_set)):
            raise told from error.__cause__
        raise


def recognised(error: BaseException) -> LakeError | None:
    """The error of the lake that this is, or that AWS's answer in it amounts to, if any."""
    seen: BaseException | None = error
    while seen is not None:
        if told := seen if isinstance(seen, LakeError) else told_in(str(seen)):
            return told
        answer = answer_of(seen)
        if answer is not None and (told := _told(answer, None, "")):
            return told
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
    return None


def _told(answer: Answer, doing: Doing | None, resource: str) -> LakeError | None:
    doing = _precisely(answer, doing, resource)
    if doing is Doing.ASSUME_ROLE and (told := role_refused(answer, resource, None, True)):
        return told
    if wrong := wrong_setting(answer, doing, resource):
        return wrong
    code = answer.plain_code
    if code in answers.DENIED and doing is not None:
        return insufficient(answer, doing, resource)
    if code in answers.TROUBLE or answer.status >= 500:
        return _trouble(answer, doing)
    return None


def _precisely(answer: Answer, doing: Doing | None, resource: str) -> Doing | None:
    """The call that was answered tells better than whoever wrapped several of them."""
    key = answer.key or resource.removeprefix("s3://").partition("/")[2]
    return doing_of(answer.operation, key) or doing


def _trouble(answer: Answer, doing: Doing | None) -> ServiceTrouble:
    service = "AWS" if doing is None else doing.service_name
    call = f" to {answer.operation}" if answer.operation else ""
    said = f": {answer.code}: {answer.said}" if answer.said else f": {answer.code}"
    return ServiceTrouble(
        f"{service} did not answer as it should{call}, also when asked again{said[:400]}. "
        "There is nothing to correct; the next sync tries again and goes on from what is published."
    )
