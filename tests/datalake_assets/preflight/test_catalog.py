"""What `check` finds of Glue: rights to read and to change, without any change that lasts."""

from collections.abc import Callable
from typing import Any

import pytest

from datalake_assets.preflight.aws import catalog_finding, glue_findings
from eventlake.aws.permissions import granted_by
from eventlake.lake import Lake
from tests.datalake_assets.preflight.conftest import LAKE, MakeLake
from tests.support.aws.enforced import User, enforced
from tests.support.servers.aws import AwsServer

REPORTS = "database __segment_datalake"


def everything(aws: AwsServer) -> dict[str, list[dict[str, Any]]]:
    """All that Glue holds."""
    glue = aws.client("glue")
    databases = [one["Name"] for one in glue.get_databases()["DatabaseList"]]
    return {name: glue.get_tables(DatabaseName=name)["TableList"] for name in databases}


@pytest.fixture
def lake(aws: AwsServer, make_lake: MakeLake) -> Lake:
    aws.bucket(LAKE)
    return make_lake(catalog="glue")


def look(lake: Lake) -> dict[str, str]:
    found = [catalog_finding(lake), *glue_findings(lake, lake.settings.sources)]
    return {finding.what: f"{finding.sign} {finding.told}" for finding in found}


def test_all_that_stays_is_the_table_of_reports(aws: AwsServer, lake: Lake) -> None:
    assert look(lake) == {
        "catalog": "✓ glue, 0 databases, 0 tables",
        REPORTS: "✓ tables may be made and changed; there are 1",
        "database ios_prod": "✓ not there yet; the first sync makes it",
    }
    before = everything(aws)
    assert {name: [t["Name"] for t in tables] for name, tables in before.items()} == {
        "__segment_datalake": ["sync_reports"]
    }
    aws.client("glue").create_database(DatabaseInput={"Name": "ios_prod"})
    assert look(lake)["database ios_prod"] == "✓ tables may be made and changed; there are 0"
    assert everything(aws) == before | {"ios_prod": []}


@pytest.mark.parametrize(
    ("denied", "what", "words"),
    [
        ("glue:GetDatabases", "catalog", "fetch schema information from Glue catalog"),
        ("glue:CreateDatabase", REPORTS, "create tables in Glue catalog"),
        ("glue:CreateTable", REPORTS, "create tables in Glue catalog"),
        ("glue:GetTable", "database ios_prod", "fetch schema information from Glue catalog"),
        ("glue:GetPartitions", "database ios_prod", "fetch schema information from Glue catalog"),
        ("glue:UpdateTable", "database ios_prod", "change tables of Glue catalog"),
        ("glue:BatchCreatePartition", "database ios_prod", "create tables in Glue catalog"),
        ("glue:BatchUpdatePartition", "database ios_prod", "change tables of Glue catalog"),
        ("glue:BatchDeletePartition", "database ios_prod", "delete table from Glue catalog"),
    ],
)
def test_a_right_that_is_missing_is_told_with_the_statement_to_grant(
    aws: AwsServer, lake: Lake, become: Callable[..., User], denied: str, what: str, words: str
) -> None:
    become(denied)
    with enforced(aws):
        said = look(lake)[what]
    assert said.startswith(f"✗ Datalake does not have permissions to {words}: {denied} on arn:")
    granted = granted_by(said)
    assert granted is not None
    assert granted["Action"] == denied


def test_a_database_that_is_missing_takes_the_right_to_make_it(
    aws: AwsServer, lake: Lake, become: Callable[..., User]
) -> None:
    look(lake)  # makes the one of the reports
    become("glue:CreateDatabase")
    with enforced(aws):
        found = look(lake)
    assert found[REPORTS].startswith("✓")
    assert found["database ios_prod"].startswith("✗ Datalake does not have permissions to create")
