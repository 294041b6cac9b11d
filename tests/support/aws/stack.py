"""The template of the lake on AWS: read as it stands, and deployed on the local AWS."""

import json
from ast import literal_eval
from dataclasses import dataclass
from typing import Any

from eventlake.aws.access import AwsAccess
from scripts.aws_policies import TEMPLATE, template
from tests.support.servers.aws import AwsServer

REGION = "us-east-1"  # the local EMR looks for the region in host names, and takes this for all
DAGSTER = "arn:aws:iam::123456789012:role/dagster"


def default(value: Any) -> Any:
    """What a parameter is where nothing is given; all else as it is."""
    return template()["Parameters"][value["Ref"]]["Default"] if isinstance(value, dict) else value


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
        for role in ("LakeRole", "EmrServiceRole", "EmrInstanceRole"):
            name = self.resources[role]
            for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]:
                found = iam.get_role_policy(RoleName=name, PolicyName=policy)["PolicyDocument"]
                document = json.dumps(literal_eval(found) if isinstance(found, str) else found)
                iam.put_role_policy(RoleName=name, PolicyName=policy, PolicyDocument=document)


def deploy(aws: AwsServer, **parameters: str) -> Stack:
    """The stack `datalake`, with what has no default filled in."""
    ec2 = AwsAccess(REGION).client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.1.0/24")["Subnet"]["SubnetId"]
    least = {"BucketName": "lake-bucket", "TrustedPrincipals": DAGSTER}
    least |= {"ExternalIds": "P3IMS7SBDH,9IP56Shn6", "VpcId": vpc, "SubnetId": subnet}
    given = least | parameters
    cloud = AwsAccess(REGION).client("cloudformation")
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
