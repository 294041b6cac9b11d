"""Where lakes lie that are broken again and again: in folders, or below prefixes of a bucket."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lake.storage import LocalStorage
from lake.storage.s3 import S3Storage
from tests.lake.failing_storage import FailingS3Storage, FailingStorage, Faults
from tests.lake.runs import Runs


class Place(Protocol):
    @property
    def kind(self) -> str: ...

    def new(self) -> Runs:
        """An empty lake."""
        ...

    def copy(self, base: Runs, name: str) -> Runs:
        """The same lake once more."""
        ...

    def fail(self, runs: Runs, faults: Faults) -> None: ...

    def heal(self, runs: Runs) -> None: ...

    def forget(self, runs: Runs) -> None:
        """It is not needed any more."""
        ...


@dataclass(frozen=True)
class Folders:
    """Lakes in folders of one folder."""

    root: Path
    kind: str = "folder"

    def new(self) -> Runs:
        base = self.root / "base"
        base.mkdir()
        return Runs(base)

    def copy(self, base: Runs, name: str) -> Runs:
        shutil.copytree(base.root, self.root / name)
        return Runs(self.root / name, first_run=10)

    def fail(self, runs: Runs, faults: Faults) -> None:
        runs.storage = FailingStorage(str(runs.root), faults)

    def heal(self, runs: Runs) -> None:
        runs.storage = LocalStorage(str(runs.root))

    def forget(self, runs: Runs) -> None:
        shutil.rmtree(runs.root)


class BucketRuns(Runs):
    """Runs over a bucket, in which raw files arrive whatever becomes of the runs."""

    def _carry_archive(self) -> None:
        failing, self.storage = self.storage, S3Storage(self.storage.uri)
        super()._carry_archive()
        self.storage = failing


@dataclass(frozen=True)
class Bucket:
    """Lakes below prefixes of one bucket."""

    root: Path
    client: Any
    name: str
    kind: str = "bucket"

    def new(self) -> Runs:
        base = self.root / "base"
        base.mkdir()
        return BucketRuns(base, store=S3Storage(f"s3://{self.name}/base"))

    def copy(self, base: Runs, name: str) -> Runs:
        shutil.copytree(base.root, self.root / name)
        for file in self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.name, Prefix="base/"
        ):
            for found in file.get("Contents", ()):
                key = f"{name}/{found['Key'].partition('/')[2]}"
                source = {"Bucket": self.name, "Key": found["Key"]}
                self.client.copy_object(Bucket=self.name, Key=key, CopySource=source)
        store = S3Storage(f"s3://{self.name}/{name}")
        return BucketRuns(self.root / name, first_run=10, store=store)

    def fail(self, runs: Runs, faults: Faults) -> None:
        runs.storage = FailingS3Storage(runs.storage.uri, faults=faults)

    def heal(self, runs: Runs) -> None:
        runs.storage = S3Storage(runs.storage.uri)

    def forget(self, runs: Runs) -> None:
        shutil.rmtree(runs.root)
        runs.storage.delete_folder("")
