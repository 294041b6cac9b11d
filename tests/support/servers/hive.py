"""Spark with Hive support, beside the test, and the catalog's tables as statements for it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather

from eventlake.catalog.base import CatalogColumn, CatalogPartition, CatalogTable
from eventlake.storage import Storage
from tests.support.repo import ROOT
from tests.support.servers.aws import AwsServer


class Hive:
    """A session that lives until `close`; it takes half a minute to start."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "spark.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.oracles.hive_reader", str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=ROOT,
            )

    def sql(self, statement: str) -> pa.Table:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(statement) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        if not answer or answer.startswith("!"):
            raise RuntimeError(answer or self._log.read_text()[-2000:])
        return feather.read_table(answer)

    def close(self) -> None:
        self._process.communicate(timeout=60)


def create_table(table: CatalogTable, storage: Storage) -> str:
    """An external table as section 8 of the specification has it: Hive's Parquet, a location."""
    columns = ", ".join(map(_column, table.columns))
    keys = ", ".join(f"{key} string" for key in table.partition_keys)
    hive = "org.apache.hadoop.hive.ql.io.parquet"
    return (
        f"CREATE EXTERNAL TABLE {table.full_name} ({columns}) PARTITIONED BY ({keys}) "
        f"ROW FORMAT SERDE '{hive}.serde.ParquetHiveSerDe' "
        f"STORED AS INPUTFORMAT '{hive}.MapredParquetInputFormat' "
        f"OUTPUTFORMAT '{hive}.MapredParquetOutputFormat' "
        f"LOCATION '{storage.full(table.location)}'"
    )


def add_columns(table: CatalogTable, columns: list[CatalogColumn]) -> str:
    return f"ALTER TABLE {table.full_name} ADD COLUMNS ({', '.join(map(_column, columns))})"


def add_partition(table: CatalogTable, partition: CatalogPartition, storage: Storage) -> str:
    location = storage.full(partition.location)
    return f"ALTER TABLE {table.full_name} ADD {_spec(table, partition)} LOCATION '{location}'"


def move_partition(table: CatalogTable, partition: CatalogPartition, storage: Storage) -> str:
    location = storage.full(partition.location)
    return f"ALTER TABLE {table.full_name} {_spec(table, partition)} SET LOCATION '{location}'"


def _column(column: CatalogColumn) -> str:
    return f"`{column.name}` {column.type}"


def _spec(table: CatalogTable, partition: CatalogPartition) -> str:
    pairs = zip(table.partition_keys, partition.values, strict=True)
    return "PARTITION (" + ", ".join(f"{key}='{value}'" for key, value in pairs) + ")"


def as_glue_has_it(aws: AwsServer, name: str) -> Iterator[str]:
    """A table of ios_prod and its partitions as Glue has them, as statements for Hive."""
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
