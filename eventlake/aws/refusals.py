"""What AWS refuses, told as errors of the lake: what was refused, on what, what to grant."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from eventlake.aws import causes
from eventlake.aws.answers import Answer, answer_of
from eventlake.aws.doing import Doing, doing_of
from eventlake.aws.permissions import insufficient
from eventlake.aws.roles import role_refused
from eventlake.aws.wrong_settings import wrong_setting
from eventlake.rules.errors import LakeError, ServiceTrouble, told_in

if TYPE_CHECKING:
    from eventlake.aws.access import AwsAccess

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
    if code in causes.DENIED and doing is not None:
        return insufficient(answer, doing, resource)
    if code in causes.TROUBLE or answer.status >= 500:
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
