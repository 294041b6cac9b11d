"""`datalake demo`: on real Spark, as a user runs it; twice."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from datalake_assets.cli.demo import hold_to_account
from datalake_assets.instance.home import claim
from eventlake.rules.errors import LakeError
from eventlake.runs.report_history import newest_reports
from eventlake.sample import SampleSpec, write_archive
from tests.support.lakes import small_lake as queries
from tests.support.lakes.jobs import SampleLake
from tests.support.terminal import Said, Terminal, everything_below, program

SAMPLE = SampleSpec(days=2, events_per_day=1000)


def test_a_folder_that_is_not_its_own_is_left_alone(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work")
    said = terminal.run("demo", "--folder", "mine")
    assert said.code == 2
    assert "mine is not empty, and the demo did not make it" in said.err
    assert everything_below(tmp_path) == {"mine/thesis.txt": b"years of work"}


def test_a_file_is_no_folder(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "demo").write_text("x")
    said = terminal.run("demo")
    assert said.code == 2
    assert "demo is a file" in said.err


@pytest.mark.usefixtures("no_java")
def test_without_java_it_does_not_begin(terminal: Terminal, tmp_path: Path) -> None:
    said = terminal.run("demo")
    assert said.code == 2
    assert "Java was not found" in said.err
    assert list(tmp_path.iterdir()) == []


def test_a_ui_on_the_demo_keeps_its_ground(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "demo/.dagster").mkdir(parents=True)
    (tmp_path / "demo/.datalake-demo").touch()
    claim(tmp_path / "demo/.dagster")
    said = terminal.run("demo")
    assert said.code == 2
    assert "Stop `datalake dev` first" in said.err


def test_a_row_too_many_in_the_lake_is_found(filled: SampleLake) -> None:
    assert hold_to_account(filled.lake, filled.account).rows > 0
    with pytest.raises(LakeError, match="table hours differ from the generator's account"):
        hold_to_account(filled.lake, write_archive(filled.folder / "other", SampleSpec(days=1)))


@dataclass(frozen=True)
class Demo:
    """A demo that has run, in a folder below that of the test."""

    parent: Path
    said: Said

    def run(self, *words: str) -> Said:
        return program("--config", "demo/lake.yaml", *words, cwd=self.parent)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    parent = tmp_path_factory.mktemp("demo")
    return Demo(parent, program("demo", "--events", str(SAMPLE.events_per_day), cwd=parent))


@pytest.mark.e2e
def test_it_describes_each_of_its_steps(ran: Demo, tmp_path: Path) -> None:
    assert ran.said.code == 0, ran.said.err
    steps = re.findall(r"^(\d)  ", ran.said.out, flags=re.MULTILINE)
    assert steps == list("1234567")
    assert "table   track_gift_card_redeemed" in ran.said.out
    assert "table   track_widget_added" in ran.said.out
    assert re.search(r"column  \S+\.properties_\S+", ran.said.out)
    account = write_archive(tmp_path, SAMPLE, arrived=SAMPLE.days)
    loaded = [
        sum((added.rows for added in account.per_sync(source.id)), Counter())
        for source in SAMPLE.sources
    ]
    rows = sum(rows.total() for rows in loaded)
    tables = sum(len({slot.table for slot in rows}) for rows in loaded)
    assert f"✓ {rows:,} rows in {tables} tables" in ran.said.out
    assert "datalake_assets.cli dev" in ran.said.out or "datalake dev" in ran.said.out


@pytest.mark.e2e
def test_its_terminal_is_quiet_but_for_its_own_words(ran: Demo) -> None:
    own = re.compile(r"\d\d:\d\d:\d\d  (day folder|[\d,]+ rows into)")
    # Where pandas is newer than pins allow, PySpark warns of it.
    foreign = [line for line in ran.said.err.splitlines() if not own.match(line)]
    assert [line for line in foreign if "pandas" not in line] == []


@pytest.mark.e2e
@pytest.mark.parametrize("sql", [queries.ROWS_PER_DAY_AND_TABLE, queries.LAST_SUCCESS])
def test_the_original_questions_have_answers(ran: Demo, sql: str) -> None:
    said = ran.run("sql", sql, "--json")
    assert said.code == 0
    assert said.json and all(value is not None for row in said.json for value in row.values())


@pytest.mark.e2e
def test_a_second_time_it_starts_clean_and_ends_the_same(ran: Demo) -> None:
    (ran.parent / "demo/notes.txt").write_text("mine")
    tables = ran.run("tables", "--json").json
    again = program("demo", "--events", str(SAMPLE.events_per_day), cwd=ran.parent)
    assert again.code == 0, again.err
    assert [t["rows"] for t in ran.run("tables", "--json").json] == [t["rows"] for t in tables]
    lake = SampleLake(ran.parent / "demo", None).lake  # type: ignore[arg-type]
    assert len(list(newest_reports(lake))) == len(SAMPLE.sources) * SAMPLE.days
    assert (ran.parent / "demo/notes.txt").read_text() == "mine"
