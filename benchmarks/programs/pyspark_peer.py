"""The same task in plain PySpark: drop duplicates, then a schema and `from_json` per table."""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StringType, StructField, StructType

from benchmarks.programs.common import TIMES, Marks, peer_arguments, snake, table_name

TABLES_AT_ONCE = 6
CONFIG: dict[str, bool | float | int | str | None] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "3g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.scheduler.mode": "FAIR",
}


def main() -> None:
    marks = Marks()
    files, out = peer_arguments()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("peer")
    spark = builder.config(map=CONFIG).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    marks.set_ready()
    staged = out.with_name("staged")
    with marks.step("stage"):
        stage(spark, files, staged)
    with marks.step("tables"), ThreadPoolExecutor(TABLES_AT_ONCE) as pool:
        names = [folder.name.removeprefix("table=") for folder in staged.glob("table=*")]
        list(pool.map(partial(write_table, spark, staged, out), names))
    spark.stop()
    marks.write()


def stage(spark: SparkSession, files: list[Path], staged: Path) -> None:
    """Write the first copy of each event to a folder per table."""
    lines = spark.read.text([str(file) for file in files])
    fields = F.from_json("value", "messageId string, receivedAt string, type string, event string")
    events = lines.select("value", fields.alias("f")).select("value", "f.*")
    first = events.groupBy("messageId").agg(
        F.min_by(F.struct("value", "type", "event"), "receivedAt").alias("kept")
    )
    named = first.select("kept.value", table_column(events).alias("table"))
    named.repartition("table").write.partitionBy("table").text(str(staged), compression="snappy")


def table_column(events: DataFrame) -> Column:
    """The table name from a map of the few (type, event) pairs, so that no Python runs per row."""
    pairs = events.select("type", F.coalesce("event", F.lit(""))).distinct().collect()
    names = [part for kind, event in pairs for part in (kind + event, table_name(kind, event))]
    spelled = F.concat("kept.type", F.coalesce("kept.event", F.lit("")))
    return F.create_map(*map(F.lit, names))[spelled]


def write_table(spark: SparkSession, staged: Path, out: Path, name: str) -> None:
    lines = spark.read.text(str(staged / f"table={name}"))
    schema = arrays_as_text(spark.read.json(str(staged / f"table={name}")).schema)
    events = lines.select(F.from_json("value", schema).alias("event")).select(*columns(schema))
    day = F.date_format("received_at", "yyyy-MM-dd").alias("day")
    hour = F.date_format("received_at", "HH").alias("hr")
    # Each table was staged as one file, so one task writes one file per hour.
    events.select("*", day, hour).write.partitionBy("day", "hr").parquet(str(out / name))


def columns(schema: StructType) -> Iterator[Column]:
    for path in leaves(schema):
        column = F.col(".".join(f"`{part}`" for part in ("event", *path)))
        if path[0] in TIMES:
            column = column.cast("timestamp")
        yield column.alias("_".join(map(snake, path)))


def leaves(schema: StructType, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for field in schema.fields:
        if isinstance(field.dataType, StructType):
            yield from leaves(field.dataType, (*above, field.name))
        else:
            yield *above, field.name


def arrays_as_text(schema: StructType) -> StructType:
    """Replace array types by string, which makes `from_json` return the JSON text."""

    def changed(type: DataType) -> DataType:
        if isinstance(type, StructType):
            return arrays_as_text(type)
        return StringType() if isinstance(type, ArrayType) else type

    return StructType([StructField(f.name, changed(f.dataType)) for f in schema.fields])


if __name__ == "__main__":
    main()
