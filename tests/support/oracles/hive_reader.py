"""A program that answers SQL with Spark over a Hive metastore of its own.

It is a program because Hive support is fixed when the first session of a process starts.
Argument: a folder for the metastore and the answers. Input: one JSON string a line, a statement;
each is answered by one line: the path of an Arrow file, or `!` and what went wrong.
"""

import json
import sys
from itertools import count
from pathlib import Path

import pyarrow.feather as feather
from pyspark.sql import SparkSession


def hive_session(folder: Path) -> SparkSession:
    metastore = f"jdbc:derby:;databaseName={folder}/metastore;create=true"
    session: SparkSession = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        .config("spark.hadoop.javax.jdo.option.ConnectionURL", metastore)
        .config("spark.driver.extraJavaOptions", f"-Dderby.stream.error.file={folder}/derby.log")
        .enableHiveSupport()
        .getOrCreate()
    )
    return session


def main() -> None:
    folder = Path(sys.argv[1])
    session = hive_session(folder)
    for number, line in zip(count(), sys.stdin, strict=False):
        try:
            path = f"{folder}/{number}.arrow"
            feather.write_feather(session.sql(json.loads(line)).toArrow(), path)
            print(path, flush=True)
        except Exception as error:
            print(f"! {' '.join(str(error).split())}", flush=True)
    session.stop()


if __name__ == "__main__":
    main()
