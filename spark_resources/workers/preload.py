"""All that Python workers need, imported and compiled before the first of them is there."""

import gc

import pandas
import pyarrow as pa
from pyspark import worker

from eventlake.columnar.parquet import writer
from eventlake.load import dedup as dedup_task
from eventlake.load import fast_reader, gather, not_loaded
from eventlake.load import stage as stage_task
from eventlake.load import write as load_task

# Arrow imports pandas when it sees the first array of numpy.
NEEDED = (worker, pandas, stage_task, dedup_task, load_task, not_loaded)


def get_ready() -> None:
    pa.set_cpu_count(1)  # there is a worker for every processor
    fast_reader.warm_up()
    writer.warm_up()
    gather.warm_up()
    gc.freeze()  # what all workers share is not looked through by each of them
