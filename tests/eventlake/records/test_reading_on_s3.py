"""Whoever looks at a lake is told the same on S3 as in a folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eventlake.audit.audit import audit
from eventlake.audit.scope import Scope
from eventlake.checks.published import check_published
from eventlake.lake import Lake
from eventlake.records import logs
from eventlake.records.find import find
from eventlake.records.logs import newest_log, run_log, run_logs, search
from eventlake.records.payloads import with_payloads
from eventlake.retype.preview import preview
from eventlake.retype.request import find_column
from eventlake.rules.types import LakeType
from eventlake.runs.report_history import newest_reports
from eventlake.runs.unit import Window
from eventlake.settings.models import Source
from eventlake.status import source_status
from eventlake.storage.s3 import S3Storage
from tests.support.faults.cases import first_sync, replay
from tests.support.lakes.retyping import lake_of
from tests.support.lakes.runs import Runs, utc
from tests.support.servers.aws import AwsServer

Look = Callable[[Lake, Source], Any]


@pytest.fixture
def lakes(tmp_path: Path, aws: AwsServer) -> list[Runs]:
    here = Runs(tmp_path / "here")
    there = Runs(tmp_path / "there", store=S3Storage(f"s3://{aws.bucket()}/lake"))
    for runs in (here, there):
        first_sync(runs)
        replay(runs)
    return [here, there]


def payloads(lake: Lake, source: Source) -> Any:
    logs = run_logs(lake, source)
    files = [file for log in logs for file in log.files]
    found = [r for _, t in search(lake.storage, files, "m1") for r in t.to_pylist()]
    shown, problems = with_payloads(lake.storage, logs, found, source.limits)
    return [(r["raw_file"], r["status"], r["record_payload"]) for r in shown], problems


def records(lake: Lake, source: Source) -> Any:
    files = run_log(lake, [source], "R1").files
    times = ("batch_started_at", "batch_ended_at")
    tables = [*logs.read(lake.storage, files), *logs.sample(lake.storage, files, 3)]
    return (
        logs.count(lake.storage, files),
        [table.drop_columns(list(times)).to_pylist() for table in tables],
        newest_log(lake, source).run_id,
    )


def found(lake: Lake, source: Source) -> Any:
    seen = find(lake, source, "m1")
    places = [(o.now, o.now_in, o.record["raw_file"], o.batch_type) for o in seen.occurrences]
    return places, seen.rows, seen.searched.index_days


def status(lake: Lake, source: Source) -> Any:
    told = source_status(lake, source, utc("2026-10-20T12:30"))
    assert told.last_sync is not None
    return told.last_sync.run_id, told.loaded_until, told.waiting, told.lease, told.open_runs


def reports(lake: Lake, source: Source) -> Any:
    return [(run.run_id, run.is_replay, run.failed) for run in newest_reports(lake)]


def audited(lake: Lake, source: Source) -> Any:
    return audit(lake, Scope(source))


def types_and_checks(lake: Lake, source: Source) -> Any:
    column = find_column(lake, "shop.track_order.properties_price")
    window = Window(utc("2026-10-01"), utc("2026-10-03"))
    shown = preview(lake, column, LakeType.STRING)
    return shown, list(check_published(lake, source, column.schema, window))


LOOKS: list[Look] = [payloads, records, found, status, reports, audited, types_and_checks]


def test_the_same_is_seen(lakes: list[Runs]) -> None:
    for look in LOOKS:
        here, there = (look(lake_of(runs), runs.source) for runs in lakes)
        assert here
        assert there == here, look
