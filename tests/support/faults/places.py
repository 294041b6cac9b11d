"""Places of lakes whose storage fails: folders and buckets."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from eventlake.storage import LocalStorage
from eventlake.storage.s3 import S3Storage
from tests.support.faults.failing_storage import FailingS3Storage, FailingStorage, Faults
from tests.support.lakes.runs import Runs
from tests.support.servers.aws import AwsServer


@dataclass(frozen=True)
class Folders:
    """Lakes in folders of one folder."""

    root: Path
    kind: str = "folder"

    def new(self) -> Runs:
        """An empty lake."""
        base = self.root / "base"
        base.mkdir()
        return Runs(base)

    def copy(self, base: Runs, name: str) -> Runs:
        """The same lake once more."""
        shutil.copytree(base.root, self.root / name)
        return Runs(self.root / name, first_run=10)

    def fail(self, runs: Runs, faults: Faults) -> None:
        runs.storage = FailingStorage(str(runs.root), faults)

    def heal(self, runs: Runs) -> None:
        runs.storage = LocalStorage(str(runs.root))

    def look(self, runs: Runs) -> Runs:
        """The lake as it is now, in a folder, where reading and cleaning it up is cheap."""
        return runs

    def forget(self, runs: Runs) -> None:
        """Remove a lake."""
        shutil.rmtree(runs.root)


class BucketRuns(Runs):
    """Runs over a bucket, in which raw files arrive whatever becomes of the runs."""

    def _carry_archive(self) -> None:
        failing, self.storage = self.storage, S3Storage(self.storage.uri)
        super()._carry_archive()
        self.storage = failing


@dataclass(frozen=True)
class Bucket:
    """Lakes below prefixes of one bucket; what is not under test goes past the network."""

    root: Path
    aws: AwsServer
    name: str
    kind: str = "bucket"

    def new(self) -> Runs:
        base = self.root / "base"
        base.mkdir()
        return BucketRuns(base, store=S3Storage(f"s3://{self.name}/base"))

    def copy(self, base: Runs, name: str) -> Runs:
        shutil.copytree(base.root, self.root / name)
        self.aws.put(self.name, {f"{name}/{path}": data for path, data in self._content(base)})
        store = S3Storage(f"s3://{self.name}/{name}")
        return BucketRuns(self.root / name, first_run=10, store=store)

    def _content(self, runs: Runs) -> Iterator[tuple[str, bytes]]:
        prefix = f"{runs.root.name}/"
        for key, data in self.aws.content(self.name, prefix).items():
            yield key.removeprefix(prefix), data

    def fail(self, runs: Runs, faults: Faults) -> None:
        runs.storage = FailingS3Storage(runs.storage.uri, faults=faults)

    def heal(self, runs: Runs) -> None:
        runs.storage = S3Storage(runs.storage.uri)

    def look(self, runs: Runs) -> Runs:
        """All its objects as files, as they are in a lake in a folder."""
        folder = self.root / "seen"
        shutil.rmtree(folder, ignore_errors=True)
        for path, data in self._content(runs):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        return Runs(folder)

    def forget(self, runs: Runs) -> None:
        shutil.rmtree(runs.root)
        self.aws.forget(self.name, f"{runs.root.name}/")


Place = Folders | Bucket
