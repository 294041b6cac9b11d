"""Spark's daemon of Python workers, which has at hand what they need before it forks the first.

Imports and compiled code are there once instead of once per worker, and their memory is shared.
"""

import gc

import pyarrow as pa
from pyspark import daemon

from lake.dedup import task as dedup_task
from lake.loading import task as load_task
from lake.staging import task as stage_task
from lake.staging.plain_events import warm_up
from lake.tracking import not_loaded

NEEDED = (stage_task, dedup_task, load_task, not_loaded)


def get_ready() -> None:
    pa.set_cpu_count(1)  # there is a worker for every processor
    warm_up()
    gc.freeze()  # what all workers share is not looked through by each of them


def main() -> None:
    get_ready()
    daemon.manager()


if __name__ == "__main__":
    main()
