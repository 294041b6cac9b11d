"""The template of the lake on AWS: read as it stands, and deployed on the local AWS."""

import json
from ast import literal_eval
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from moto.cloudformation import parsing
from moto.core.common_models import CloudFormationModel
from moto.emrserverless.models import emrserverless_backends

from eventlake.aws.access import AwsAccess
from scripts.aws_policies import TEMPLATE, template
from tests.support.servers.aws import AwsServer
from tests.support.servers.emr_serverless import new_application

REGION = "us-east-1"  # the local EMR looks for the region in host names, and takes this for all
DAGSTER = "arn:aws:iam::123456789012:role/dagster"


_LEFT_OUT: Any = object()


def evaluated(value: Any, **parameters: str) -> Any:
    """A part of the template with these parameters, else the defaults; other functions stay."""
    if isinstance(value, list):
        entries = [evaluated(one, **parameters) for one in value]
        return [one for one in entries if one is not _LEFT_OUT]
    if not isinstance(value, dict):
        return value
    if value == {"Ref": "AWS::NoValue"}:
        return _LEFT_OUT
    match tuple(value.items()):
        case (("Ref", name),) if name in template()["Parameters"]:
            known = template()["Parameters"][name]
            given = parameters.get(name, known.get("Default"))
            return given.split(",") if known["Type"] == "CommaDelimitedList" else given
        case (("Fn::If", [condition, met, unmet]),):
            holds = evaluated(template()["Conditions"][condition], **parameters)
            return evaluated(met if holds else unmet, **parameters)
        case (("Fn::Equals", sides),):
            left, right = evaluated(sides, **parameters)
            return str(left) == str(right)
        case (("Fn::Not", [condition]),):
            return not evaluated(condition, **parameters)
        case (("Fn::Select", [index, listed]),):
            return evaluated(listed, **parameters)[index]
    kept = {key: evaluated(one, **parameters) for key, one in value.items()}
    return {key: one for key, one in kept.items() if one is not _LEFT_OUT}


@dataclass(frozen=True)
class Stack:
    """What was deployed."""

    outputs: dict[str, str]
    resources: dict[str, str]

    def client(self, service: str) -> Any:
        return AwsAccess(REGION).client(service)

    def role_documents(self, role: str) -> list[dict[str, Any]]:
        """The policies of a role that stand in the template, as IAM has them."""
        iam, name = self.client("iam"), self.resources[role]
        inline = [
            iam.get_role_policy(RoleName=name, PolicyName=policy)["PolicyDocument"]
            for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]
        ]
        attached = iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
        own = [policy["PolicyArn"] for policy in attached if ":aws:policy/" not in str(policy)]
        versions = [iam.get_policy_version(PolicyArn=arn, VersionId="v1") for arn in own]
        return inline + [version["PolicyVersion"]["Document"] for version in versions]

    def mend_inline_policies(self) -> None:
        """The local CloudFormation stores them as Python prints them, which IAM cannot read."""
        iam = self.client("iam")
        for name in (name for role, name in self.resources.items() if role.endswith("Role")):
            for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]:
                found = iam.get_role_policy(RoleName=name, PolicyName=policy)["PolicyDocument"]
                document = json.dumps(literal_eval(found) if isinstance(found, str) else found)
                iam.put_role_policy(RoleName=name, PolicyName=policy, PolicyDocument=document)


class _Application(CloudFormationModel):
    """An application of EMR Serverless, which the local CloudFormation does not know."""

    def __init__(self, application_id: str) -> None:
        self.physical_resource_id = application_id

    @staticmethod
    def cloudformation_name_type() -> str:
        return "Name"

    @staticmethod
    def cloudformation_type() -> str:
        return "AWS::EMRServerless::Application"

    @classmethod
    def create_from_cloudformation_json(
        cls,
        resource_name: str,
        cloudformation_json: dict[str, Any],
        account_id: str,
        region_name: str,
        **kwargs: Any,
    ) -> "_Application":
        given = cloudformation_json["Properties"]
        made = new_application(
            emrserverless_backends[account_id][region_name].create_application,
            name=given["Name"],
            release_label=given["ReleaseLabel"],
            application_type=given["Type"],
            tags={tag["Key"]: tag["Value"] for tag in given["Tags"]},
            maximum_capacity={k.lower(): v for k, v in given["MaximumCapacity"].items()},
        )
        return cls(made.id)


@contextmanager
def _entries_left_out() -> Iterator[None]:
    """The local CloudFormation leaves properties without value out, but not entries of lists."""
    known = parsing.clean_json

    def clean_json(value: Any, resources: Any) -> Any:
        cleaned = known(value, resources)
        return [one for one in cleaned if one is not None] if isinstance(value, list) else cleaned

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parsing, "clean_json", clean_json)
        yield


def deploy(aws: AwsServer, **parameters: str) -> Stack:
    """The stack `datalake`, with what has no default filled in."""
    ec2 = AwsAccess(REGION).client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.1.0/24")["Subnet"]["SubnetId"]
    least = {"BucketName": "lake-bucket", "TrustedPrincipals": DAGSTER}
    least |= {"ExternalIds": "P3IMS7SBDH,9IP56Shn6", "VpcId": vpc, "SubnetIds": subnet}
    given = least | parameters
    cloud = AwsAccess(REGION).client("cloudformation")
    with _entries_left_out():
        cloud.create_stack(
            StackName="datalake",
            TemplateBody=TEMPLATE.read_text(),
            Capabilities=["CAPABILITY_IAM"],
            Parameters=[{"ParameterKey": k, "ParameterValue": v} for k, v in given.items()],
        )
    (stack,) = cloud.describe_stacks(StackName="datalake")["Stacks"]
    assert stack["StackStatus"] == "CREATE_COMPLETE"
    listed = cloud.list_stack_resources(StackName="datalake")["StackResourceSummaries"]
    made = [entry for entry in listed if entry["LogicalResourceId"]]  # the rest was not asked for
    deployed = Stack(
        {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]},
        {entry["LogicalResourceId"]: entry["PhysicalResourceId"].strip() for entry in made},
    )
    deployed.mend_inline_policies()
    return deployed
