"""Permissions that are missing, with the statement that grants them."""

import json
import re

from eventlake.aws.answers import Answer
from eventlake.aws.doing import Doing
from eventlake.aws.grants import action_of, as_text, grant_arn, object_arn, statement
from eventlake.rules.errors import InsufficientPermissions

GRANT = "Grant it with this policy statement: "
_MUTE = ("", "access denied", "forbidden", "no response body")
_DENY = re.compile(r"with an explicit deny in an? ([\w -]+)")


def insufficient(answer: Answer, doing: Doing, resource: str) -> InsufficientPermissions:
    """What was refused, on what, to whom, and the statement to add to whose policy."""
    bucket, key = place_in_s3(answer, resource)
    action = answer.action or action_of(doing.service, answer.operation) or doing.actions[0]
    arn = answer.resource or _arn(action, doing, bucket, key, resource)
    words = doing.words.format(bucket=bucket or "?", place=resource or "of the settings")
    who = f" to {answer.who}" if answer.who else ""
    told = f"Datalake does not have permissions to {words}: {action} on {arn} was refused{who}."
    granted = statement(*_needed(answer, action, arn, bucket, resource))
    remedies = [*_remarks(answer, doing), GRANT + as_text(granted)]
    return InsufficientPermissions(" ".join([told, *remedies]))


def granted_by(message: str) -> dict[str, object] | None:
    """The statement that a message ends with."""
    _, found, text = message.partition(GRANT)
    granted: dict[str, object] = json.loads(text) if found else {}
    return granted or None


def place_in_s3(answer: Answer, resource: str) -> tuple[str, str]:
    """Bucket and key, from the answer or from who made the call."""
    if answer.bucket:
        return answer.bucket, answer.key
    bucket, _, key = resource.removeprefix("s3://").partition("/")
    return bucket, key


def _arn(action: str, doing: Doing, bucket: str, key: str, resource: str) -> str:
    if resource.startswith("arn:"):
        return resource
    if doing.service == "s3":
        return object_arn(action, bucket, key)
    if doing.service == "elasticmapreduce":
        return f"arn:aws:elasticmapreduce:*:*:cluster/{resource or '*'}"
    if doing.service == "glue":
        database, _, table = resource.partition(".")
        if table:
            return f"arn:aws:glue:*:*:table/{database}/{table}"
        return f"arn:aws:glue:*:*:database/{database}" if database else "arn:aws:glue:*:*:catalog"
    return resource or "*"


def _needed(
    answer: Answer, action: str, arn: str, bucket: str, resource: str
) -> tuple[list[str], list[str]]:
    """All that the call takes: AWS names one thing at a time, and would refuse the next."""
    if action == "s3:GetObject" and answer.resource is None and bucket:
        # Without the right to list, S3 refuses to say that an object is not there.
        return [action, "s3:ListBucket"], [grant_arn(arn), f"arn:aws:s3:::{bucket}"]
    if answer.operation == "CopyObject":
        return [action, "s3:GetObject"], [grant_arn(arn)]
    if action.startswith("glue:"):
        return [action], _glue_arns(arn, resource)
    return [action], [grant_arn(arn)]


def _glue_arns(arn: str, resource: str) -> list[str]:
    """Glue asks for the right on the catalog, the database and the table, each."""
    home, _, what = arn.rpartition(":")
    database = resource.partition(".")[0] or [*what.split("/"), ""][1]
    if not database or resource.startswith("arn:"):
        return [f"{home}:catalog", f"{home}:database/*", f"{home}:table/*"]
    return [f"{home}:catalog", f"{home}:database/{database}", f"{home}:table/{database}/*"]


def _remarks(answer: Answer, doing: Doing) -> list[str]:
    remarks: list[str] = []
    if answer.action is None and answer.said.strip(".").lower() not in _MUTE:
        remarks.append(f"AWS says: {answer.said.rstrip('.')}.")
    if "Lake Formation" in answer.said:
        remarks.append("Lake Formation governs the catalog: grant it there, besides the policy.")
    if deny := _DENY.search(answer.said):
        remarks.append(f"An explicit deny in a {deny[1].strip()} is in the way: take it out first.")
    if doing.service == "elasticmapreduce" and doing is not Doing.START_CLUSTER:
        remarks.append("The cluster must be in this account and region, with tag vendor=segment.")
    return remarks
