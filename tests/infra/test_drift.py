"""Policies and code held together: every call to AWS is granted, and nothing else of the bucket."""

import ast
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

import botocore.session
import pytest
from botocore import xform_name

from eventlake.aws.permissions import OPERATIONS
from tests.support.aws.recorded import actions
from tests.support.aws.stack import deploy
from tests.support.repo import ROOT
from tests.support.servers.aws import AwsServer

# A client's name, and what the actions of its service begin with.
SERVICES = {"s3": "s3", "glue": "glue", "emr": "elasticmapreduce"}

# Done with the credentials of whoever administers the bucket, not with the role.
NOT_BY_THE_ROLE = {"eventlake/aws/lifecycle.py"}
# Told by an answer's header, also where the answer is a refusal.
NEEDS_NOTHING = {"head_bucket"}
# What a call takes besides itself.
TAKES_ALSO = {
    "run_job_flow": {
        "elasticmapreduce:AddTags",
        "elasticmapreduce:PutAutoTerminationPolicy",
        "elasticmapreduce:PutManagedScalingPolicy",
    },
    "copy_object": {"s3:GetObject"},
}
# Granted by the policy that people know from before, whether this release uses it or not.
GLUE = """
    BatchCreatePartition BatchDeletePartition BatchDeleteTable BatchDeleteTableVersion
    BatchGetPartition CreateDatabase CreatePartition CreateTable DeletePartition DeleteTable
    DeleteTableVersion GetPartition GetPartitions GetTable GetTableVersion GetTableVersions
    GetTables UpdatePartition UpdateTable
"""
EMR = "AddJobFlowSteps CancelSteps DescribeCluster DescribeStep RunJobFlow TerminateJobFlows"
KNOWN_FROM_BEFORE = {f"glue:{name}" for name in GLUE.split()} | {
    f"elasticmapreduce:{name}" for name in EMR.split()
}


@cache
def operations() -> dict[str, str]:
    """What methods of clients need: `put_object` → `s3:PutObject`."""
    session = botocore.session.get_session()
    return {
        xform_name(name): OPERATIONS[name].action if name in OPERATIONS else f"{prefix}:{name}"
        for service, prefix in SERVICES.items()
        for name in session.get_service_model(service).operation_names
    }


def called(module: Path) -> Iterator[str]:
    """Methods of AWS's clients that a module calls, or names for someone who calls them."""
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        name = ""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            # The module `socket` has a function of the name of one of Glue's operations.
            name = "" if ast.unparse(node.func.value) == "socket" else node.func.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value
        if name in operations():
            yield name


def all_calls(except_modules: Collection[str] = ()) -> set[str]:
    return {
        name
        for package in ("eventlake", "spark_resources", "datalake_assets")
        for module in sorted((ROOT / package).rglob("*.py"))
        if str(module.relative_to(ROOT)) not in except_modules
        for name in called(module)
    }


@pytest.fixture(scope="module")
def used() -> set[str]:
    """The actions that the role needs."""
    calls = all_calls(NOT_BY_THE_ROLE) - NEEDS_NOTHING
    return {operations()[name] for name in calls}.union(*(TAKES_ALSO.get(c, set()) for c in calls))


@pytest.fixture
def granted(aws: AwsServer) -> set[str]:
    return actions(deploy(aws).role_documents("LakeRole"))


def of(service: str, among: set[str]) -> set[str]:
    return {action for action in among if action.startswith(f"{service}:")}


def test_of_the_bucket_exactly_what_is_used_is_granted(used: set[str], granted: set[str]) -> None:
    assert of("s3", granted) == of("s3", used)


@pytest.mark.parametrize("service", ["glue", "elasticmapreduce"])
def test_every_call_to_glue_and_emr_is_granted(
    service: str, used: set[str], granted: set[str]
) -> None:
    assert of(service, used) - granted == set()
    assert of(service, granted) == of(service, used | KNOWN_FROM_BEFORE)


def test_nothing_is_granted_of_other_services_but_roles_and_alerts(granted: set[str]) -> None:
    others = granted.difference(*(of(service, granted) for service in SERVICES.values()))
    assert others == {"iam:PassRole", "sns:Publish"}


def test_the_cluster_may_do_to_bucket_and_catalog_what_the_role_may(aws: AwsServer) -> None:
    stack = deploy(aws)
    role, cluster = (
        actions(stack.role_documents(name)) for name in ("LakeRole", "EmrInstanceRole")
    )
    assert of("s3", cluster) == of("s3", role)
    assert of("glue", cluster) == of("glue", role) | {"glue:GetUserDefinedFunctions"}


def test_every_call_has_words_for_its_refusal() -> None:
    assert all_calls() - {xform_name(name) for name in OPERATIONS} == set()


def test_calls_are_found_however_they_are_written(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('client.put_object()\ncalls.pages("get_tables")\nown.put_things("x")\n')
    assert sorted(called(module)) == ["get_tables", "put_object"]
