"""`datalake demo`: a complete lake from sample data, step by step."""

import os
import shutil
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from datalake_assets.cli.check import run_check, show_findings
from datalake_assets.cli.dev import DEMO
from datalake_assets.cli.output import fail, say, show_answer, span, working
from datalake_assets.cli.reports import show_reports
from datalake_assets.cli.sync import Done, exit_code, reported, show_runs
from datalake_assets.instance.home import is_claimed, leave_home
from datalake_assets.launch import launch_sync
from datalake_assets.preflight import prepare
from eventlake.lake import Lake
from eventlake.rules.errors import LakeError, UsageError
from eventlake.rules.text import plural
from eventlake.runs.report_history import newest_reports
from eventlake.sample import SampleArchive, SampleSpec, Slot, write_archive
from eventlake.settings.file import DEFAULT_FILE, load_settings
from eventlake.settings.models import Source
from eventlake.sql import LakeSql
from spark_resources.engines.java import require_java

_FEWEST_EVENTS = 600
_NAMES_SHOWN = 3
_ORDERS = """\
SELECT day, properties_currency AS currency,
       count(*) AS orders, sum(properties_total) AS total
FROM web_shop.track_order_completed
GROUP BY day, currency
ORDER BY day, total DESC"""
_RESCUED = """\
SELECT received_at, properties_quantity, rescued_data
FROM web_shop.track_product_added
WHERE rescued_data IS NOT NULL
ORDER BY received_at
LIMIT 5"""


def demo(
    folder: Annotated[Path, typer.Option(help="Folder of the demo.")] = DEMO.parent,
    events: Annotated[
        int, typer.Option(min=_FEWEST_EVENTS, help="Events a day and source.")
    ] = 5000,
) -> None:
    """Create a complete lake from sample data: two sources, two days, two syncs each.

    It has its own folder, which the next demo replaces; it changes no other lake.

    \b
    Examples:
      datalake demo
      datalake demo --folder /tmp/demo --events 10000
    """
    begun = time.monotonic()
    require_java()
    file = fresh_folder(folder)
    leave_home()  # the demo has its own runs
    lake = Lake.open(load_settings(file, {}, Path.cwd()))
    spec = SampleSpec(days=2, events_per_day=events)

    _step(1, "Raw events of the first day: a web shop and an iOS app")
    _arrive(folder / STORAGE, spec, 1)

    _step(2, "Are settings, access and Java in order?")
    show_findings(run_check(file, lake))

    _step(3, "The first sync: it creates tables, infers types, drops duplicates")
    _sync(lake)
    say("Rejected rows were broken on purpose: no JSON, no time, cut off in the middle.")

    _step(4, "The second day arrives, with late files of the first, new properties, new events")
    generated = _arrive(folder / STORAGE, spec, 2)
    _show_new(_sync(lake))

    _step(5, "Every run left a report")
    show_reports(lake, newest_reports(lake))

    _step(6, "Questions in SQL")
    _ask(lake, "What was ordered in the web shop?", _ORDERS)
    _ask(lake, "What happened to quantities of day two that are not whole numbers?", _RESCUED)

    _step(7, "Is it right?")
    agreed = compare_with_generated(lake, generated)
    say(
        f"✓ {agreed.rows:,} rows in {agreed.tables} tables: for every one of {agreed.hours:,} "
        "table hours as many as the generator wrote.",
        style="green",
    )
    say(f"\nDone in {span(time.monotonic() - begun)}. The lake is in {folder / STORAGE}.", "bold")
    _say_what_next(file)


def _step(number: int, title: str) -> None:
    say(f"\n{number}  {title}", style="bold cyan")


def _arrive(root: Path, spec: SampleSpec, day: int) -> SampleArchive:
    generated = write_archive(root, spec, arrived=day)
    for source in spec.sources:
        files = [file for file in generated.files[source.id] if file.arrival == day]
        lines = sum(file.rows_in for file in files)
        say(f"{source.slug:<10}{plural(len(files), 'gzipped file')}, {lines:,} events")
    return generated


def _sync(lake: Lake) -> list[Done]:
    prepare(lake, lake.settings.sources)
    runs: list[Done] = []
    for source in lake.settings.sources:
        with working(f"syncing {source.slug}"):
            runs.append(reported(lake, source, launch_sync(lake, source, warnings=False)))
    show_runs(runs)
    for run in runs:
        if not run.outcome.succeeded:
            fail(f"{run.source.slug}: {run.error}")
            raise typer.Exit(exit_code(run.outcome))
    return runs


def _show_new(runs: list[Done]) -> None:
    """New tables and columns, which nothing had announced."""
    for run in runs:
        if run.report is None:
            continue
        columns = run.report.new_columns
        # One per table, preferably a property of the event.
        examples = {name.split(".")[0]: name for name in reversed(columns) if "properties_" in name}
        say(f"\nNew in {run.source.slug}:")
        for table in run.report.new_tables:
            say(f"  table   {table}")
        for name in list(examples.values())[:_NAMES_SHOWN]:
            say(f"  column  {name}")
        say(f"  and {plural(len(columns) - min(len(examples), _NAMES_SHOWN), 'more column')}")


def _ask(lake: Lake, question: str, sql: str) -> None:
    say(f"\n{question}", style="bold")
    say("\n".join(f"  {line}" for line in sql.splitlines()), style="dim")
    show_answer(LakeSql(lake.catalog, lake.storage).query(sql), limit=0)


def _say_what_next(file: Path) -> None:
    program = _program()
    with_config = f"{program} --config {file}"
    found_by_itself = file == DEMO and not Path(DEFAULT_FILE).exists()
    say(
        f"""
What next
  {program if found_by_itself else with_config} dev
      the Dagster UI: the graph of tables, their checks, replays by day
  {with_config} tables
  {with_config} sql "SELECT * FROM ios_prod.screen LIMIT 3"
      tables, and queries of them
  {program} init
      settings for a lake of your own"""
    )


def _program() -> str:
    """The command that runs this program again."""
    if shutil.which("datalake"):
        return "datalake"
    script = Path(sys.argv[0])
    if script.name != "datalake":
        return f"{Path(sys.executable).name} -m datalake_assets.cli"
    return os.path.relpath(script) if script.is_relative_to(Path.cwd()) else str(script)


@dataclass(frozen=True, slots=True)
class Agreement:
    """The numbers of equal tables, table hours and rows."""

    tables: int = 0
    hours: int = 0
    rows: int = 0

    def __add__(self, other: "Agreement") -> "Agreement":
        return Agreement(
            self.tables + other.tables, self.hours + other.hours, self.rows + other.rows
        )


def compare_with_generated(lake: Lake, generated: SampleArchive) -> Agreement:
    """Compare the rows of every source, table and hour in the lake; raise if any differs."""
    return sum((_source(lake, generated, s) for s in lake.settings.sources), Agreement())


def _source(lake: Lake, generated: SampleArchive, source: Source) -> Agreement:
    loads = generated.as_they_arrive(source.id)
    expected = generated.expected(source.id, loads).rows
    found = _rows(lake, source)
    wrong = [slot for slot in expected.keys() | found.keys() if expected[slot] != found[slot]]
    if wrong:
        first = min(wrong)
        raise LakeError(
            f"{source.slug}: {len(wrong)} table hours differ from the generated ones, the "
            f"first {first.table} {first.day} {first.hr}: {found[first]} rows in the lake, "
            f"{expected[first]} generated. Please report this."
        )
    return Agreement(len({slot.table for slot in found}), len(found), found.total())


def _rows(lake: Lake, source: Source) -> Counter[Slot]:
    """The rows in the lake, by one query of all tables."""
    tables = [table.name for table in lake.catalog.tables(source.database)]
    each = (
        f'SELECT \'{name}\', day, hr, count(*) FROM "{source.database}"."{name}" GROUP BY ALL'
        for name in tables
    )
    answer = LakeSql(lake.catalog, lake.storage).query(" UNION ALL ".join(each))
    rows = zip(*(column.to_pylist() for column in answer.columns), strict=True)
    return Counter({Slot(table, day, hr): count for table, day, hr, count in rows})


SETTINGS = "lake.yaml"
STORAGE = "lake"
_HOME = ".dagster"
_MARK = ".datalake-demo"
_MADE = (SETTINGS, STORAGE, _HOME)
_HEAD = """\
# The settings of the demo; `datalake init` writes a file for your own lake, with every setting.
workspace_id: demo
storage: ./lake
sources:
"""


def fresh_folder(folder: Path) -> Path:
    """Create an empty lake for the sample's sources; returns the path of its settings."""
    _refuse_other_folders(folder)
    for name in _MADE:
        _remove(folder / name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MARK).write_text("Created by `datalake demo`, which may replace its files here.\n")
    sources = (f"  - id: {source.id}\n    slug: {source.slug}\n" for source in SampleSpec.sources)
    file = folder / SETTINGS
    file.write_text(_HEAD + "".join(sources))
    return file


def _refuse_other_folders(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file. Name a folder for the demo with --folder.")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / _MARK).exists():
        raise UsageError(
            f"{folder} is not empty, and the demo did not create it: it was not changed. Name "
            "another folder with --folder."
        )
    if is_claimed(folder / _HOME):
        raise UsageError(
            f"A UI runs on the lake in {folder}, which the demo replaces. Stop `datalake dev` "
            "first, or name another folder with --folder."
        )


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
