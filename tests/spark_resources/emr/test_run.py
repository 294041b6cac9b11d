"""Runs on EMR: what they do, what they tell, and what becomes of them when something breaks."""

import json

from lake import paths
from tests.spark_resources.emr.conftest import EmrLake

DAY = "1790812800000"  # 2026-10-01
EVENT = (
    b'{"type":"track","event":"Order","messageId":"m%d","receivedAt":"2026-10-01T05:00:00Z",'
    b'"properties":{"price":%d}}'
)


def report(lake: EmrLake) -> list[dict]:
    [path] = lake.files(paths.reports_root())
    return [json.loads(line) for line in (lake.lake.storage.read(path) or b"").splitlines()]


def test_a_sync_is_a_step_on_the_cluster_of_the_settings(emr_lake: EmrLake) -> None:
    emr_lake.put_raw(DAY, "a.json", *(EVENT % (n, n) for n in range(3)))

    [unit] = emr_lake.run()

    assert unit.report.row_count == 3
    source, table = report(emr_lake)
    assert (source["status"], source["emr_cluster_id"]) == ("finished", emr_lake.cluster_id)
    assert (table["table_name"], table["row_count"]) == ("track_order", 3)
    assert source["s3_bucket"] == "lake-bucket"
