"""README and query documentation: examples run as written."""

import json
import re
import shlex
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import yaml
from pyarrow import fs

from datalake_assets.cli.demo import STORAGE, fresh_folder
from eventlake.lake import Lake
from eventlake.rules.names import Naming, column_name, pointer_path, table_name
from eventlake.sample import IOS_PROD, SampleSpec, write_archive
from eventlake.settings.file import load_settings
from eventlake.settings.models import Settings
from eventlake.sql import LakeSql
from tests.support.lakes.jobs import drained
from tests.support.query_page import EXAMPLES, PAGE, examples, lake_on_aws
from tests.support.repo import ROOT, blocks
from tests.support.servers.aws import AwsServer
from tests.support.servers.glue import strict_glue
from tests.support.terminal import datalake, program

README = (ROOT / "README.md").read_text()
DATALAKE = ".venv/bin/datalake"


COMMANDS = [
    shlex.split(line, comments=True)
    for block in blocks(README, "sh")
    for line in block.splitlines()
]
ON_THE_DEMO = [
    words[3:] for words in COMMANDS if words[:3] == [DATALAKE, "--config", "demo/lake.yaml"]
]
ON_YOUR_OWN = [words[1:] for words in COMMANDS if words[0] == DATALAKE and "--config" not in words]
INLINE = re.findall(r"`datalake ((?:[a-z]+ ?)+)([^`]*)`", README)


def test_every_command_of_the_readme_is_run_by_a_test() -> None:
    made = [words for words in COMMANDS if words[0] == "make"]
    steps = (ROOT / ".ci/run").read_text()
    assert [
        words for words in made if words != ["make", "dev"] and " ".join(words) not in steps
    ] == []
    others = [words for words in COMMANDS if words[0] != "make"]
    assert len(others) == len(ON_THE_DEMO) + len(ON_YOUR_OWN)


@pytest.mark.parametrize(("command", "rest"), INLINE, ids=lambda value: str(value).strip())
def test_a_command_of_the_tables_has_the_options_it_is_shown_with(command: str, rest: str) -> None:
    shown = datalake(*command.split(), "--help").out
    assert [option for option in re.findall(r"--[a-z-]+", rest) if option not in shown] == []


@pytest.mark.parametrize(
    ("words", "program"),
    [(["demo", "DEMO=x"], "demo --folder x"), (["dev", "PORT=99"], "dev --port 99")],
)
def test_what_make_starts_is_set_up_before(words: list[str], program: str) -> None:
    command = ["make", "-n", "--no-print-directory", *words]
    printed = subprocess.check_output(command, cwd=ROOT, text=True)
    assert printed.splitlines() == ["scripts/setup", f"{DATALAKE} {program}"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a demo, whose lake is smaller and made without Spark."""
    folder = tmp_path_factory.mktemp("readme") / "demo"
    lake = Lake.open(load_settings(fresh_folder(folder), {}, folder))
    write_archive(folder / STORAGE, SampleSpec(days=2, events_per_day=80, files_per_day=1, hours=3))
    for source in lake.settings.sources:
        drained(lake.settings, source)
    return folder


@pytest.mark.parametrize("words", ON_THE_DEMO, ids=lambda words: str(words[0]))
def test_the_demo_answers_the_commands_of_the_readme(words: list[str], demo: Path) -> None:
    assert program("--config", demo / "lake.yaml", *words, cwd=demo).out.strip()


@pytest.mark.e2e
def test_your_own_data_in_the_steps_of_the_readme(tmp_path: Path) -> None:
    init, check, sync = ON_YOUR_OWN
    program(*init, cwd=tmp_path)
    settings, _ = blocks(README, "yaml")
    (tmp_path / "lake.yaml").write_text(settings)
    sample = SampleSpec(days=1, events_per_day=50, files_per_day=1, hours=2)
    write_archive(tmp_path / "data", sample)

    program(*check, cwd=tmp_path)
    program(*sync, cwd=tmp_path)
    assert list((tmp_path / f"data/segment-data/data/{IOS_PROD.id}").rglob("*.parquet"))


def test_three_other_lines_make_it_a_lake_on_aws() -> None:
    at_home, on_aws = (yaml.safe_load(block) for block in blocks(README, "yaml"))
    assert len(on_aws) == 3
    lake = Settings.model_validate(at_home | on_aws | {"emr_cluster_id": "j-3SXSUSDNPIS"})
    assert (lake.storage, lake.catalog, lake.engine) == tuple(on_aws.values())


# A schema of Redshift's is a database of the lake by another name.
SPECTRUM = "spectrum_ios_prod"


def test_the_statements_lead_to_the_rows_of_the_lake(
    tmp_path: Path, aws: AwsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    strict_glue(aws, monkeypatch)
    lake = lake_on_aws(tmp_path, aws)
    sql = LakeSql(lake.catalog, lake.storage)
    [moved, *_] = lake.catalog.partitions("ios_prod", "track_order_completed")
    assert "/versions/" in moved.location

    answers: dict[str, pa.Table] = {}
    for example in examples("duckdb"):
        answers[example.text] = sql.query(example.text.replace(SPECTRUM, "ios_prod"))
    [without_rows] = [text for text, answer in answers.items() if len(answer) == 0]
    assert "status='failed'" in without_rows
    assert len(answers) == len(examples("duckdb"))  # no two are the same

    # Arrow, unlike boto3, does not read the endpoint from the environment.
    monkeypatch.setattr(fs, "S3FileSystem", partial(fs.S3FileSystem, endpoint_override=aws.url))
    monkeypatch.chdir(tmp_path)
    from_the_lake, from_glue = [_answer_of(example.text) for example in examples("python")]
    per_day = sql.query(examples("duckdb")[0].text)
    assert from_the_lake["orders"].to_pylist() == per_day["orders"].to_pylist()
    total = per_day.to_pandas()["total"].sum()
    assert from_glue == [(sum(per_day["orders"].to_pylist()), total)]

    [block] = blocks(PAGE.read_text("utf-8"), "sh")
    for line in block.splitlines():
        assert "properties_currency" in datalake(*shlex.split(line)[1:]).out


def _answer_of(program: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(program, str(PAGE), "exec"), names)
    return names["answer"]


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.language == "sql"], ids=str)
def test_examples_that_no_test_runs_are_sql_at_least(example: Any) -> None:
    """DuckDB parses Athena's and Spark's reading statements; those that only they have are few."""
    words = example.text.split()
    if words[0] == "SELECT":
        portable = re.sub(r"array\((\w+)\)", r"\1[]", example.text)  # Athena's round brackets
        assert len(duckdb.extract_statements(portable)) == 1
    else:
        assert words[:2] in (["CREATE", "EXTERNAL"], ["SET", words[1]], ["CREATE", "TEMPORARY"])


def test_every_block_names_what_runs_it() -> None:
    text = PAGE.read_text("utf-8")
    assert len(re.findall(r"^```(sql|python)$", text, re.MULTILINE)) == len(EXAMPLES)
    [policy] = blocks(text, "json")
    assert json.loads(policy)["Version"] == "2012-10-17"


def rows_of(page: str, heading: str) -> list[list[str]]:
    """The cells of a Markdown table below a heading, without its head."""
    section = (ROOT / "docs" / page).read_text("utf-8").partition(f"## {heading}\n")[2]
    lines = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.parametrize("row", rows_of("warehouse.md", "Tables"), ids=lambda row: str(row[0]))
def test_tables_are_named_as_the_page_on_warehouses_says(row: list[str]) -> None:
    kind, _, event = row[0].split(",")[0].partition(" ")
    names = [table_name(kind, event.strip('"') or None, naming) for naming in Naming]
    assert [cell.strip("`") for cell in row[1:]] == names


@pytest.mark.parametrize("row", rows_of("warehouse.md", "Columns"), ids=lambda row: str(row[0]))
def test_columns_are_named_as_the_page_on_warehouses_says(row: list[str]) -> None:
    field, event_type, *shown = row
    path = pointer_path(field.strip("`"))
    kind = "track" if event_type == "all" else event_type
    names = [column_name(path, naming, kind) for naming in Naming]
    assert [None if "rescued_data" in cell else cell.strip("`") for cell in shown] == names
