"""The template's policies as documents to paste into the console.

`python -m tests.support.aws.by_hand` writes them anew after the template has changed.
"""

import json
import re
from typing import Any

from tests.support.aws.stack import TEMPLATE, properties

FOLDER = TEMPLATE.parent / "by-hand"
# What one writes over in the console, and how the parts are called there.
NAMES = {
    "AWS::Partition": "aws",
    "AWS::Region": "REGION",
    "AWS::AccountId": "ACCOUNT",
    "BucketName": "BUCKET",
    "Prefix": "",
    "RawFolder": "segment-logs",
    "VpcId": "VPC",
    "SubnetId": "SUBNET",
    "TrustedPrincipals": ["arn:aws:iam::ACCOUNT:role/ROLE_OF_DAGSTER"],
    "ExternalIds": ["WORKSPACE_ID"],
    "AlertsTopic": "arn:aws:sns:REGION:ACCOUNT:datalake-alerts",
    "EmrServiceRole.Arn": "arn:aws:iam::ACCOUNT:role/datalake-emr-service",
    "EmrInstanceRole.Arn": "arn:aws:iam::ACCOUNT:role/datalake-emr-instance",
}


def resolved(value: Any) -> Any:
    """A part of the template with names in the place of its functions."""
    if isinstance(value, list):
        return [resolved(one) for one in value]
    if not isinstance(value, dict):
        return value
    if "Ref" in value:
        return NAMES[value["Ref"]]
    if "Fn::GetAtt" in value:
        return NAMES[".".join(value["Fn::GetAtt"])]
    if "Fn::Sub" in value:
        return re.sub(r"\$\{([^}]+)\}", lambda found: str(NAMES[found[1]]), value["Fn::Sub"])
    return {key: resolved(one) for key, one in value.items()}


def inline(role: str) -> dict[str, Any]:
    """All inline policies of a role as one."""
    documents = [policy["PolicyDocument"] for policy in properties(role)["Policies"]]
    statements = [said for document in documents for said in document["Statement"]]
    return {"Version": "2012-10-17", "Statement": statements}


def documents() -> dict[str, str]:
    """Every file with its content."""
    made = {
        "lake-access.json": properties("LakeAccess")["PolicyDocument"],
        "lake-role.json": inline("LakeRole"),
        "lake-role-trust.json": properties("LakeRole")["AssumeRolePolicyDocument"],
        "emr-service.json": inline("EmrServiceRole"),
        "emr-instance.json": inline("EmrInstanceRole"),
    }
    return {name: json.dumps(resolved(part), indent=2) + "\n" for name, part in made.items()}


if __name__ == "__main__":
    for name, text in documents().items():
        (FOLDER / name).write_text(text)
