"""All that Python workers need, imported and compiled before the first of them is there."""

import gc

import pandas
import pyarrow as pa
from pyspark import worker

from eventlake.columnar.parquet import writer
from eventlake.dedup import task as dedup_task
from eventlake.loading import kernel_gathering
from eventlake.loading import task as load_task
from eventlake.staging import plain_events
from eventlake.staging import task as stage_task
from eventlake.tracking import not_loaded

# Arrow imports pandas when it sees the first array of numpy.
NEEDED = (worker, pandas, stage_task, dedup_task, load_task, not_loaded)


def get_ready() -> None:
    pa.set_cpu_count(1)  # there is a worker for every processor
    plain_events.warm_up()
    writer.warm_up()
    kernel_gathering.warm_up()
    gc.freeze()  # what all workers share is not looked through by each of them
