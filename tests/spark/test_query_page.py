"""docs/query.md: Spark reads the tables as Glue defines them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lake.sql import LakeSql
from tests.aws_server import AwsServer
from tests.query_page import BUCKET, examples, lake_on_aws
from tests.spark.hive import Hive

pytestmark = pytest.mark.spark


def test_spark_finds_what_datalake_sql_finds(tmp_path: Path, aws: AwsServer, hive: Hive) -> None:
    lake = lake_on_aws(tmp_path, aws)
    copy = tmp_path / "copy of the bucket"
    for file in lake.storage.files("segment-data"):
        target = copy / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(lake.storage.read(file.path) or b"")
    here = (f"s3://{BUCKET}", str(copy))

    hive.sql("CREATE DATABASE ios_prod")
    for name in ("identify", "track_application_opened", "track_order_completed"):
        for statement in _definition(aws, name):
            hive.sql(statement.replace(*here))
    sql = LakeSql(lake.catalog, lake.storage)
    asked = 0
    for example in examples("spark"):
        answer = hive.sql(example.text.replace(*here))
        if example.text.startswith("SELECT"):
            assert len(answer) > 0, example
        if "duckdb" in example.runs:
            assert answer.to_pylist() == sql.query(example.text).to_pylist(), example
            asked += 1
    assert asked == 4


def _definition(aws: AwsServer, name: str) -> Iterator[str]:
    """A table and its partitions as Glue has them, as statements for Hive."""
    glue = aws.client("glue")
    table = glue.get_table(DatabaseName="ios_prod", Name=name)["Table"]
    stored = table["StorageDescriptor"]
    yield (
        f"CREATE EXTERNAL TABLE ios_prod.{name} ({_columns(stored['Columns'])}) "
        f"PARTITIONED BY ({_columns(table['PartitionKeys'])}) "
        f"ROW FORMAT SERDE '{stored['SerdeInfo']['SerializationLibrary']}' "
        f"STORED AS INPUTFORMAT '{stored['InputFormat']}' "
        f"OUTPUTFORMAT '{stored['OutputFormat']}' LOCATION '{stored['Location']}'"
    )
    keys = [key["Name"] for key in table["PartitionKeys"]]
    for partition in glue.get_partitions(DatabaseName="ios_prod", TableName=name)["Partitions"]:
        pairs = zip(keys, partition["Values"], strict=True)
        spec = ", ".join(f"{key}='{value}'" for key, value in pairs)
        location = partition["StorageDescriptor"]["Location"]
        yield f"ALTER TABLE ios_prod.{name} ADD PARTITION ({spec}) LOCATION '{location}'"


def _columns(columns: list[dict[str, Any]]) -> str:
    return ", ".join(f"`{column['Name']}` {column['Type']}" for column in columns)
