"""`datalake check` of a lake on S3, Glue and EMR."""

import gzip
from pathlib import Path

import pytest

from eventlake.aws.access import forget_sessions
from tests.support.aws.enforced import User, all_but, enforced
from tests.support.aws.preflight import LAKE, OCTOBER_1, start_cluster
from tests.support.servers.aws import AwsServer
from tests.support.terminal import Terminal


def settings(aws: AwsServer, role: str) -> str:
    return f"""\
workspace_id: P3IMS7SBDH
storage: s3://{LAKE}/events
catalog: glue
engine: emr
region: eu-west-1
iam_role_arn: {role}
emr_cluster_id: {start_cluster(aws)}
sources:
  - id: 9IP56Shn6
    slug: ios_prod
  - id: wX3mQ8rTz
    slug: web_shop
"""


@pytest.fixture
def role(aws: AwsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the role of a lake in order; whoever runs the commands may assume it."""
    aws.bucket(LAKE)
    for source in ("9IP56Shn6", "wX3mQ8rTz"):
        key = f"events/segment-logs/{source}/{OCTOBER_1}/a.gz"
        aws.client("s3").put_object(Bucket=LAKE, Key=key, Body=gzip.compress(b"{}"))
    arn = aws.role(external_id="P3IMS7SBDH")
    aws.client("iam").put_role_policy(
        RoleName="datalake", PolicyName="own", PolicyDocument=all_but()
    )
    (tmp_path / "lake.yaml").write_text(settings(aws, arn))
    for name, value in User(aws, denied=[]).environment.items():
        monkeypatch.setenv(name, value)
    forget_sessions()
    return "datalake"


def signs(out: str) -> dict[str, str]:
    return {line.split("  ")[1].strip(): line[0] for line in out.splitlines()}


@pytest.mark.usefixtures("role")
def test_a_lake_in_order(aws: AwsServer, terminal: Terminal) -> None:
    with enforced(aws):
        said = terminal.run("check")
    found = signs(said.out)
    cluster = next(what for what in found if what.startswith("cluster "))
    assert found == {
        "settings": "✓",
        "role of ios_prod": "✓",
        "role of web_shop": "✓",
        "storage": "✓",
        "segment-stage": "✓",
        "segment-data": "✓",
        "sync_tracking_datasets": "✓",
        "Pipes messages": "✓",
        "lifecycle": "!",
        "archive of ios_prod": "✓",
        "tables of ios_prod": "✓",
        "archive of web_shop": "✓",
        "tables of web_shop": "✓",
        "catalog": "✓",
        "database __segment_datalake": "✓",
        "database ios_prod": "✓",
        "database web_shop": "✓",
        cluster: "✓",
        f"steps of {cluster.split()[1]}": "✓",
    }
    assert (said.code, said.err) == (0, "")
    listed = aws.client("s3").list_objects_v2(Bucket=LAKE)["Contents"]
    assert {one["Key"].split("/")[1] for one in listed} == {"segment-logs"}


def test_what_the_role_may_not_do_is_told_and_the_rest_is_tried(
    aws: AwsServer, terminal: Terminal, role: str
) -> None:
    denied = all_but("glue:UpdateTable", "elasticmapreduce:AddJobFlowSteps")
    aws.client("iam").put_role_policy(RoleName=role, PolicyName="own", PolicyDocument=denied)
    with enforced(aws):
        said = terminal.run("check", "--json")
    wrong = {
        one["what"].split(" j-")[0]: one["seen"] for one in said.json if one["level"] == "error"
    }
    assert set(wrong) == {
        "database __segment_datalake",
        "database ios_prod",
        "database web_shop",
        "steps of",
    }
    assert "glue:UpdateTable" in wrong["database ios_prod"]
    assert "elasticmapreduce:AddJobFlowSteps" in wrong["steps of"]
    assert said.code == 1


def test_a_wrong_setting_is_one_though_the_file_reads_well(
    aws: AwsServer, terminal: Terminal, role: str, tmp_path: Path
) -> None:
    file = tmp_path / "lake.yaml"
    file.write_text(file.read_text().replace(f"s3://{LAKE}", "s3://another-bucket"))
    with enforced(aws):
        said = terminal.run("check")
    assert signs(said.out)["storage"] == "✗"
    assert said.code == 2
