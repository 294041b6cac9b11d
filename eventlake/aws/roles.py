"""Roles that do not let us in."""

from eventlake.aws import causes
from eventlake.aws.answers import Answer
from eventlake.aws.doing import Doing
from eventlake.aws.permissions import insufficient
from eventlake.rules.errors import InvalidSetting, LakeError


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
    if answer.plain_code not in causes.DENIED:
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
