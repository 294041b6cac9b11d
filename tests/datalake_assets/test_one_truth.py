"""Ten kinds of trouble at once: every screen says the same, and what it names heals the lake."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from datalake_assets.console.access import Access
from datalake_assets.console.app import Console
from datalake_assets.console.pages import PAGES
from eventlake.api import EventLake
from eventlake.lake import Lake
from eventlake.retype import find_column, record_request
from eventlake.rules import paths
from eventlake.rules.errors import LakeError
from eventlake.rules.types import LakeType
from eventlake.runs.open_runs import OpenRun
from eventlake.runs.unit import Window
from eventlake.state.lease import Holder
from eventlake.state.report import RunFacts
from eventlake.storage.documents import encode
from tests.support.lakes.archive import Archive, RawDay, identify, order
from tests.support.lakes.jobs import drained
from tests.support.lakes.settings import lake_in
from tests.support.servers.console import serving
from tests.support.terminal import datalake

TODAY = datetime.now(UTC).date()
DAYS = [str(TODAY - timedelta(days=n)) for n in (4, 3, 2, 1)]
SLUGS = ("mixed", "fails", "damaged")
REPLAY = re.compile(r"datalake replay --source \S+ --from (\S+)T00 --to (\S+)T00")


class Planted:
    """A lake of three sources: one with mixed trouble, one that fails, one with damaged files."""

    def __init__(self, folder: Path) -> None:
        self.lake: Lake = lake_in(
            folder,
            *(
                {"id": f"S{n}", "slug": slug}
                for n, slug in enumerate(("mixed", "fails", "damaged"))
            ),
            alerts={"webhook": "http://127.0.0.1:9/", "rejected_percent": 5},
        )
        self.root = folder / "data"
        self.mixed()
        self.fails()
        self.damaged()

    def day(self, slug: str, day: int) -> RawDay:
        source = self.lake.settings.source(slug)
        return Archive(self.root / paths.raw_root(source.id)).day(DAYS[day])

    def run(self, slug: str, first: str = "", end: str = "", refused: bool = False) -> None:
        """A sync, or a replay of some days."""
        window = Window(*map(_midnight, (first, end))) if first else None
        what: dict[str, Any] = {"window": window, "accept_changes": not refused} if window else {}
        drained(self.lake.settings, self.lake.settings.source(slug), **what)

    def mixed(self) -> None:
        for day in range(3):
            self.day("mixed", day).file(
                "a", order("A", DAYS[day]), order(f"m{day}", DAYS[day], n=1)
            )
            self.run("mixed")
        self.day("mixed", 0).file("a", order("m0", DAYS[0], n=1))
        with pytest.raises(LakeError, match="no longer the same"):
            self.run("mixed", DAYS[0], DAYS[1], refused=True)
        self.run("mixed", DAYS[0], DAYS[1])  # sets A free on the days after it
        good = (order(f"r{n}", DAYS[3], n=n) for n in range(9))
        self.day("mixed", 3).file("rejected", *good, "{")
        self.run("mixed")
        self.day("mixed", 1).file("a", order("m1", DAYS[1], n=7))
        self.day("mixed", 2).raw("table.csv", b"not taken")
        (self.root / paths.raw_root("S0") / "01-10-2026").mkdir()
        (self.root / paths.raw_root("S0") / "01-10-2026/a.json.gz").write_bytes(b"")
        column = find_column(self.lake, "mixed.track_order.properties_n")
        record_request(self.lake, column, LakeType.STRING, lambda lease: None)

    def fails(self) -> None:
        self.day("fails", 0).file("a", order("m0", DAYS[0]))
        self.run("fails")
        self.day("fails", 1).file("bad", *["{"] * 200)
        for _ in range(2):
            with pytest.raises(LakeError, match="200 of 200 rows were rejected"):
                self.run("fails")

    def damaged(self) -> None:
        for day in range(2):
            lines = order(f"m{day}", DAYS[day]), identify(f"i{day}", DAYS[day])
            self.day("damaged", day).file("a", *lines)
            self.run("damaged")
        self.first("segment-data/data/S2/segment_type=identify/**/*.parquet").unlink()
        cut(self.first("segment-data/_state/sources/S2/ids/**/*.arrow"))
        cut(self.first("segment-data/reports/**/source=S2/*/report.json"))
        source = self.lake.settings.source("damaged")
        facts = RunFacts.of(self.lake.settings, source, "R9", datetime.now(UTC))
        gone = Holder("another-machine", 1, datetime.now(UTC) - timedelta(hours=1))
        self.lake.storage.write(paths.open_run("S2", "R9"), encode(OpenRun(facts, 2, gone)))

    def first(self, pattern: str) -> Path:
        return min(self.root.glob(pattern))


def _midnight(day: str) -> datetime:
    return datetime.fromisoformat(day).replace(tzinfo=UTC)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Planted:
    monkeypatch.chdir(tmp_path)
    return Planted(tmp_path)


Ask = Callable[[str], Any]


@pytest.fixture
def ask(planted: Planted) -> Iterator[Ask]:
    """The JSON twin of a page."""

    def answered(path: str) -> Any:
        answer = client.get(path)
        assert answer.status == 200, (path, answer.text)
        return answer.json if path.endswith(".json") else None

    with serving(Console(EventLake(planted.lake), Access(), dagster="")) as client:
        yield answered


def status() -> dict[str, Any]:
    return {one["source"]: one for one in datalake("status", "--json").json}


def problems(name: str) -> dict[str, list[str]]:
    return {slug: [one[name] for one in found["problems"]] for slug, found in status().items()}


def alerting(found: list[dict[str, Any]]) -> list[str]:
    return [problem["kind"] for problem in found]


def test_every_screen_says_the_same(planted: Planted, ask: Ask) -> None:
    mixed = "rejected ignored ignored changed to_replay to_replay rejected_rows requested_types"
    assert problems("kind") == {
        "mixed": mixed.split(),
        "fails": ["sync_failures"],
        "damaged": ["damaged", "crashed"],
    }
    said = problems("text")
    printed = datalake("status").err
    assert all(f"{slug}: {text}\n" in printed for slug, texts in said.items() for text in texts)
    for page in ("/overview.json", "/health.json"):
        shown = {one["slug"]: one for one in ask(page)["sources"]}
        assert {slug: one["problems"] for slug, one in shown.items()} == said
        levels = {slug: one["level"] for slug, one in shown.items()}
        assert levels == dict.fromkeys(said, "needs attention") | {"fails": "failing"}

    found = datalake("check", "--json", code=1).json  # as alerts do not come through
    checked = " ".join(" ".join(one["seen"] for one in found).split())
    core = re.compile("not loaded: |.*Segment.Internal: ")  # what check says in other words
    assert [t for texts in said.values() for t in texts if core.sub("", t) not in checked] == []

    listed = {one["source"]: alerting(one["open"]) for one in datalake("alerts", "--json").json}
    assert listed == {slug: alerting(one["open_problems"]) for slug, one in status().items()}
    shown = {one["slug"]: alerting(one["alerts"]) for one in ask("/overview.json")["sources"]}
    assert listed == shown == {"mixed": ["rejected"], "fails": ["sync_failures"], "damaged": []}


def test_runs_and_tables_are_the_same_on_every_screen(planted: Planted, ask: Ask) -> None:
    reports = datalake("reports", "--json").json
    history = ask("/history.json")["runs"]
    states = {run["run_id"]: run["status"] for run in reports}
    assert {run["run_id"]: run["status"] for run in history} == states
    failed = {run for run, state in states.items() if state == "failed"}
    assert {run["run_id"] for run in datalake("reports", "--failed", "--json").json} == failed
    assert len(failed) == 3  # two syncs and a refused replay
    assert [*states.values()].count("damaged") == 1

    tables = {f"{t['database']}.{t['table']}": t["rows"] for t in datalake("tables", "--json").json}
    shown = {table["name"]: table["rows"] for table in ask("/tables.json")["tables"]}
    assert tables == shown
    lost = {
        one["table"]
        for one in datalake("check", "--tables", "--json", code=1).json
        if one["check"] == "partitions" and not one["passed"]
    }
    assert lost == {"damaged.identify"}
    for name in tables:
        ask(f"/tables/{name.replace('.', '/')}")
    for name in {name for name, rows in tables.items() if rows is not None} - lost:
        [counted] = datalake("sql", f"SELECT count(*) AS n FROM {name}", "--json").json
        assert counted["n"] == tables[name]
    assert "segment_type=identify" in datalake("sql", "SELECT * FROM damaged.identify", code=1).err
    for page in PAGES:
        if "{" not in page.path:
            ask(page.path)
    for run in states:
        ask(f"/history/{run}")
    assert datalake("find", "m1", "--json").json


def test_what_the_screens_name_heals_the_lake(planted: Planted) -> None:
    archive = planted.root / paths.raw_root("S0")
    shutil.rmtree(archive / "01-10-2026")
    (planted.day("mixed", 2).folder / "table.csv").unlink()
    planted.day("fails", 1).file("bad", order("m1", DAYS[1]))
    planted.day("mixed", 3).file("good", *(order(f"g{n}", DAYS[3], n=n) for n in range(20)))
    datalake("recover")
    for slug in SLUGS:
        planted.run(slug)
        for text in problems("text")[slug]:
            for first, end in REPLAY.findall(text):
                planted.run(slug, first, end)
    planted.run("mixed", DAYS[0], str(TODAY))  # all days of a table, for its requested type
    assert problems("kind") == {slug: [] for slug in SLUGS}
    for slug in SLUGS:
        datalake("audit", "--source", slug)
    datalake("check", "--tables")
    datalake("sql", "SELECT * FROM __segment_datalake.sync_reports")
    assert {run["status"] for run in datalake("reports", "--json").json} == {"finished", "failed"}
