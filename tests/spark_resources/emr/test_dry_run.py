"""A dry run on EMR: a step on the standing cluster, and nothing is changed by it."""

from spark_resources.engines.emr.run import EmrRun
from tests.spark_resources.emr.conftest import BOTH_DAYS, EmrLake, Quick
from tests.support.servers.emr_node import PYTHON


def test_a_dry_run_tells_what_a_replay_would_do(emr_lake: EmrLake) -> None:
    emr_lake.put_day("2026-10-01", 3)
    emr_lake.put_day("2026-10-02", 4)
    job = emr_lake.job(window=BOTH_DAYS, dry_run=True)
    first, second = EmrRun(job, emr_lake.heard, PYTHON, Quick()).planned()

    assert (first.report.row_count, second.report.row_count) == (3, 4)
    assert [(p.table, p.values, p.rows_now, p.rows_then) for p in second.partitions] == [
        ("shop.track_order", ("2026-10-02", "05"), 0, 4)
    ]
    assert len(emr_lake.emr.steps(emr_lake.cluster_id)) == 1
    left = [*emr_lake.files("segment-data"), *emr_lake.files("segment-stage")]
    assert [path for path in left if "/_state/code/" not in path] == []  # but for the program
