"""Wherever a run on S3 breaks off, one more undisturbed run makes it good, as in a folder."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from lake.state import holder
from lake.storage.s3 import S3Storage
from lake.work import placing
from lake.work.dataflow import InProcess
from tests.aws_server import AwsServer
from tests.lake.failing_storage import Broken, FailingS3Storage, Fault, Faults
from tests.lake.runs import Runs
from tests.lake.work.test_crashes import Step, first_sync, growth, replay, snapshot

SAMPLE = 9
"""Of all changes that a step makes; the soak takes each."""


@dataclass(frozen=True)
class Bucket:
    """Lakes side by side in one bucket, each with a copy of what the first holds."""

    aws: AwsServer
    folder: Path
    name: str

    def uri(self, lake: str) -> str:
        return f"s3://{self.name}/{lake}"

    def copy(self, lake: str) -> None:
        client = self.aws.client("s3")

        def copy(path: str) -> None:
            origin = {"Bucket": self.name, "Key": f"base/{path}"}
            client.copy_object(Bucket=self.name, Key=f"{lake}/{path}", CopySource=origin)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(copy, [file.path for file in S3Storage(self.uri("base")).files("")]))

    def broken_off(self, lake: str, step: Step, faults: Faults) -> Runs:
        """A copy in which a step breaks off; whoever breaks off is dead at once."""
        self.copy(lake)
        store = FailingS3Storage(self.uri(lake), faults=faults)
        runs = Runs(self.folder / lake, first_run=10, store=store)
        with suppress(Broken), pytest.MonkeyPatch.context() as patch:
            patch.setattr(holder, "LIFETIME", timedelta(0))
            step(runs)
        runs.storage = S3Storage(self.uri(lake))
        return runs


@pytest.fixture
def bucket(aws: AwsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    monkeypatch.setattr(placing, "SPLIT_BYTES", 2500)
    monkeypatch.setattr(InProcess, "slots", 2)
    return Bucket(aws, tmp_path, aws.bucket())


def all_is_made_good(bucket: Bucket, step: Step, fault: Fault, every: int) -> None:
    if step is not first_sync:
        first_sync(Runs(bucket.folder / "base", store=S3Storage(bucket.uri("base"))))
    again: Callable[[Runs], object] = replay if step is replay else Runs.sync
    summed = step is not replay
    undisturbed = Faults()
    wanted = snapshot(bucket.broken_off("whole", step, undisturbed), summed)
    assert wanted["left"] == [[], [], None, []]
    changes = [
        (at, change)
        for at, change in enumerate(undisturbed.log)
        if change.startswith("create") or fault is not Fault.LOST_ANSWER
    ]
    assert changes
    for at, change in changes[::every]:
        runs = bucket.broken_off(f"at-{at}", step, Faults(fault, at))
        again(runs)
        assert snapshot(runs, summed) == wanted, f"{fault} at {change}"


@pytest.mark.parametrize("fault", list(Fault))
def test_a_run_that_breaks_off_is_made_good_by_the_next(bucket: Bucket, fault: Fault) -> None:
    all_is_made_good(bucket, growth, fault, every=SAMPLE if fault is not Fault.LOST_ANSWER else 2)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("step", [first_sync, growth, replay])
def test_a_run_that_breaks_off_anywhere_is_made_good_by_the_next(
    bucket: Bucket, step: Step, fault: Fault
) -> None:
    all_is_made_good(bucket, step, fault, every=1)
