"""The statements of docs/query.md, and a lake on the local AWS that they can be asked of."""

import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from eventlake.lake import Lake
from eventlake.runs.unit import Window
from eventlake.sample import IOS_PROD, SampleSpec, write_archive
from tests.support.lakes.jobs import drained
from tests.support.lakes.runs import utc
from tests.support.lakes.settings import lake_in
from tests.support.repo import ROOT
from tests.support.servers.aws import AwsServer

PAGE = ROOT / "docs" / "query.md"
BUCKET = "acme-events"  # as on the page
_BLOCK = re.compile(r"<!-- runs: ([a-z ]+) -->\n```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    """A block of the page, and what runs it."""

    runs: frozenset[str]
    language: str
    text: str

    def __str__(self) -> str:
        return " ".join(self.text.split())[:60]


EXAMPLES = [
    Example(frozenset(runs.split()), language, text)
    for runs, language, text in _BLOCK.findall(PAGE.read_text("utf-8"))
]


def examples(runner: str) -> list[Example]:
    return [example for example in EXAMPLES if runner in example.runs]


def lake_on_aws(folder: Path, aws: AwsServer) -> Lake:
    """A lake of the sample's phones: two syncs, and a replay that has moved half of it."""
    aws.bucket(BUCKET)
    lake = lake_in(folder, IOS_PROD, storage=f"s3://{BUCKET}", catalog="glue")
    spec = SampleSpec(days=2, events_per_day=160, files_per_day=1, hours=2)
    for arrived in (1, 2):
        write_archive(folder / "raw", spec, arrived=arrived, sources=[IOS_PROD])
        for file in (path for path in (folder / "raw").rglob("*") if path.is_file()):
            lake.storage.create(str(file.relative_to(folder / "raw")), file.read_bytes())
        drained(lake.settings)
    first = utc("2026-10-01")
    window = Window(first, first + timedelta(days=1))
    drained(lake.settings, window=window, accept_changes=True)
    return lake
