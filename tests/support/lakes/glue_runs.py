"""The same runs as elsewhere, with the lake on S3 and its catalog in Glue."""

from pathlib import Path
from typing import Any

from eventlake.catalog.base import Catalog
from eventlake.lake import Lake
from eventlake.runs.context import RunContext
from eventlake.runs.unit import Window
from eventlake.settings.models import Settings
from eventlake.state.manifest import RunKind
from tests.support.lakes.runs import Runs
from tests.support.servers.aws import AwsServer

PLACE = "s3://lake-bucket/some/prefix"


class GlueRuns(Runs):
    """Raw files are written below `root` and put on S3 before each run."""

    def __init__(self, root: Path, aws: AwsServer, **source: Any) -> None:
        aws.bucket("lake-bucket")
        super().__init__(root, **source)
        self.storage = self._lake.storage

    def set(self, **source: Any) -> None:
        super().set(**source)
        sources = self.settings.model_dump(exclude_unset=True)["sources"]
        given = {"workspace_id": "W1", "storage": PLACE, "catalog": "glue", "sources": sources}
        self.settings = Settings.model_validate(given)
        self._lake = Lake.open(self.settings)

    @property
    def catalog(self) -> Catalog:
        return self._lake.catalog

    def context(self, kind: RunKind = RunKind.SYNC, window: Window | None = None) -> RunContext:
        known = {file.path: file.size for file in self.storage.files(self.source.raw)}
        for file in (path for path in self.root.rglob("*") if path.is_file()):
            path, content = str(file.relative_to(self.root)), file.read_bytes()
            if known.get(path) != len(content):
                self.storage.write(path, content)
        return super().context(kind, window)
