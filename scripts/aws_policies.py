"""Print the IAM policies of infra/aws/datalake.yaml, to paste into the console (docs/aws.md).

`scripts/aws_policies.py` lists their names, `scripts/aws_policies.py lake-access` prints one.
"""

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import yaml

TEMPLATE = Path(__file__).resolve().parent.parent / "infra/aws/datalake.yaml"
# Parameters and references of the template, by the values to replace in the console.
NAMES = {
    "AWS::Partition": "aws",
    "AWS::Region": "REGION",
    "AWS::AccountId": "ACCOUNT",
    "BucketName": "BUCKET",
    "Prefix": "",
    "RawFolder": "segment-logs",
    "VpcId": "VPC",
    "TrustedPrincipals": ["arn:aws:iam::ACCOUNT:role/ROLE_OF_DAGSTER"],
    "ExternalIds": ["WORKSPACE_ID"],
    "AlertsTopic": "arn:aws:sns:REGION:ACCOUNT:datalake-alerts",
    "EmrServiceRole.Arn": "arn:aws:iam::ACCOUNT:role/datalake-emr-service",
    "EmrInstanceRole.Arn": "arn:aws:iam::ACCOUNT:role/datalake-emr-instance",
    "JobRole.Arn": "arn:aws:iam::ACCOUNT:role/datalake-jobs",
}


class _Loader(yaml.SafeLoader):
    """YAML with the short forms of CloudFormation's functions."""


def _function(loader: yaml.Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    name = suffix if suffix == "Ref" else f"Fn::{suffix}"
    if isinstance(node, yaml.ScalarNode):
        text = loader.construct_scalar(node)
        return {name: text.split(".") if suffix == "GetAtt" else text}
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    assert isinstance(node, yaml.MappingNode)
    return {name: loader.construct_mapping(node, deep=True)}


_Loader.add_multi_constructor("!", _function)


@cache
def template() -> dict[str, Any]:
    document: dict[str, Any] = yaml.load(TEMPLATE.read_text(), _Loader)
    return document


def properties(resource: str) -> dict[str, Any]:
    found: dict[str, Any] = template()["Resources"][resource]["Properties"]
    return found


def policies() -> dict[str, Any]:
    """Each policy by its name in docs/aws.md."""
    made = {
        "lake-access": properties("LakeAccess")["PolicyDocument"],
        "lake-role": _inline("LakeRole"),
        "lake-role-on-emr": properties("ClusterAccess")["PolicyDocument"],
        "lake-role-on-emr-serverless": properties("JobAccess")["PolicyDocument"],
        "lake-role-trust": properties("LakeRole")["AssumeRolePolicyDocument"],
        "emr-service": _inline("EmrServiceRole"),
        "emr-instance": _inline("EmrInstanceRole"),
        "jobs": _inline("JobRole"),
        "jobs-trust": properties("JobRole")["AssumeRolePolicyDocument"],
    }
    return {name: _resolved(part) for name, part in made.items()}


def _inline(role: str) -> dict[str, Any]:
    """All inline policies of a role as one."""
    documents = [policy["PolicyDocument"] for policy in properties(role)["Policies"]]
    statements = [one for document in documents for one in document["Statement"]]
    return {"Version": "2012-10-17", "Statement": statements}


def _resolved(value: Any) -> Any:
    """A part of the template with `NAMES` instead of its functions."""
    if isinstance(value, list):
        return [_resolved(one) for one in value]
    if not isinstance(value, dict):
        return value
    if "Ref" in value:
        return NAMES[value["Ref"]]
    if "Fn::GetAtt" in value:
        return NAMES[".".join(value["Fn::GetAtt"])]
    if "Fn::Sub" in value:
        return re.sub(r"\$\{([^}]+)\}", lambda found: str(NAMES[found[1]]), value["Fn::Sub"])
    return {key: _resolved(one) for key, one in value.items()}


def main(wanted: list[str]) -> int:
    known = policies()
    if len(wanted) != 1 or wanted[0] not in known:
        print(f"Name one of: {', '.join(known)}", file=sys.stderr)
        return 2
    print(json.dumps(known[wanted[0]], indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
