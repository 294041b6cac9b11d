"""`datalake demo`: on real Spark, as a user runs it; twice."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from datalake_assets.cli.demo import compare_with_generated
from datalake_assets.instance.home import claim
from eventlake.rules.errors import LakeError
from eventlake.runs.report_history import newest_reports
from eventlake.sample import SampleSpec, write_archive
from tests.support.lakes import small_lake as queries
from tests.support.lakes.jobs import SampleLake
from tests.support.terminal import Result, datalake, everything_below, program

SAMPLE = SampleSpec(days=2, events_per_day=1000)


def put_other_work(folder: Path) -> None:
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")


def run_its_ui(folder: Path) -> None:
    (folder / ".dagster").mkdir(parents=True)
    (folder / ".datalake-demo").touch()
    claim(folder / ".dagster")


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (put_other_work, "demo is not empty, and the demo did not create it"),
        (Path.touch, "demo is a file"),
        (run_its_ui, "Stop `datalake dev` first"),
    ],
)
def test_a_folder_of_others_is_left_alone(
    tmp_path: Path, prepare: Callable[[Path], None], message: str
) -> None:
    prepare(tmp_path / "demo")
    before = everything_below(tmp_path)
    assert message in datalake("demo", code=2).err
    assert everything_below(tmp_path) == before


@pytest.mark.usefixtures("no_java")
def test_without_java_it_does_not_begin(tmp_path: Path) -> None:
    assert "Java was not found" in datalake("demo", code=2).err
    assert list(tmp_path.iterdir()) == []


def test_a_row_too_many_in_the_lake_is_found(filled: SampleLake) -> None:
    assert compare_with_generated(filled.lake, filled.generated).rows > 0
    with pytest.raises(LakeError, match="table hours differ from the generated ones"):
        compare_with_generated(
            filled.lake, write_archive(filled.folder / "other", SampleSpec(days=1))
        )


@dataclass(frozen=True)
class Demo:
    """A demo that has run, in the folder `demo` below `parent`."""

    parent: Path
    result: Result

    def run(self, *words: str) -> Result:
        return program("--config", "demo/lake.yaml", *words, cwd=self.parent)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    parent = tmp_path_factory.mktemp("demo")
    return Demo(parent, program("demo", "--events", str(SAMPLE.events_per_day), cwd=parent))


@pytest.mark.e2e
def test_it_describes_each_of_its_steps(ran: Demo, tmp_path: Path) -> None:
    steps = re.findall(r"^(\d)  ", ran.result.out, flags=re.MULTILINE)
    assert steps == list("1234567")
    assert "table   track_gift_card_redeemed" in ran.result.out
    assert "table   track_widget_added" in ran.result.out
    assert re.search(r"column  \S+\.properties_\S+", ran.result.out)
    generated = write_archive(tmp_path, SAMPLE, arrived=SAMPLE.days)
    loaded = [
        sum((added.rows for added in generated.per_sync(source.id)), Counter())
        for source in SAMPLE.sources
    ]
    rows = sum(rows.total() for rows in loaded)
    tables = sum(len({slot.table for slot in rows}) for rows in loaded)
    assert f"✓ {rows:,} rows in {tables} tables" in ran.result.out
    assert "datalake_assets.cli dev" in ran.result.out or "datalake dev" in ran.result.out


@pytest.mark.e2e
def test_stderr_shows_only_its_own_progress(ran: Demo) -> None:
    own = re.compile(r"\d\d:\d\d:\d\d  (day folder|[\d,]+ rows into)")
    # Where pandas is newer than pins allow, PySpark warns of it.
    foreign = [line for line in ran.result.err.splitlines() if not own.match(line)]
    assert [line for line in foreign if "pandas" not in line] == []


@pytest.mark.e2e
@pytest.mark.parametrize("sql", [queries.ROWS_PER_DAY_AND_TABLE, queries.LAST_SUCCESS])
def test_the_original_questions_have_answers(ran: Demo, sql: str) -> None:
    result = ran.run("sql", sql, "--json")
    assert result.json and all(value is not None for row in result.json for value in row.values())


@pytest.mark.e2e
def test_a_second_time_it_starts_clean_and_ends_the_same(ran: Demo) -> None:
    (ran.parent / "demo/notes.txt").write_text("mine")
    tables = ran.run("tables", "--json").json
    program("demo", "--events", str(SAMPLE.events_per_day), cwd=ran.parent)
    assert [t["rows"] for t in ran.run("tables", "--json").json] == [t["rows"] for t in tables]
    lake = SampleLake(ran.parent / "demo", None).lake  # type: ignore[arg-type]
    assert len(list(newest_reports(lake))) == len(SAMPLE.sources) * SAMPLE.days
    assert (ran.parent / "demo/notes.txt").read_text() == "mine"
