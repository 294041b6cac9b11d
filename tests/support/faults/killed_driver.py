"""A program that runs a step on Spark and is killed at a change of the storage.

Arguments: the lake's folder, the step, and how the change begins.
"""

import sys
from pathlib import Path

from dagster_pyspark import LazyPySparkResource

from eventlake.runs import placement
from spark_resources.engines.java import with_archive
from spark_resources.engines.local import LocalEngine
from spark_resources.engines.session import SPARK_CONFIG
from tests.support.faults.cases import CASES
from tests.support.faults.machines import KillingStorage, Kills
from tests.support.lakes.runs import Runs


def main(root: str, step: str, where: str) -> None:
    placement.SPLIT_BYTES = 220  # small lakes have several files, too
    kills = Kills(where=where)
    config = with_archive(SPARK_CONFIG) | {"spark.master": "local[2]"}
    engine = LocalEngine(pyspark=LazyPySparkResource(spark_config=config))
    runs = Runs(Path(root), first_run=10, store=KillingStorage(root, kills))
    runs.flow = engine.dataflow
    next(case for case in CASES if case.name == step).step(runs)


if __name__ == "__main__":
    main(*sys.argv[1:])
