"""docs/query.md: its statements are asked of a lake on the local AWS, as they stand there."""

import json
import re
import shlex
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import fs

from eventlake.sql import LakeSql
from tests.support.query_page import EXAMPLES, PAGE, examples, lake_on_aws
from tests.support.servers.aws import AwsServer
from tests.support.servers.glue import strict_glue
from tests.support.terminal import Terminal

# A schema of Redshift's is a database of the lake by another name.
SPECTRUM = "spectrum_ios_prod"


def test_the_statements_lead_to_the_rows_of_the_lake(
    tmp_path: Path,
    aws: AwsServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    strict_glue(aws, monkeypatch)
    lake = lake_on_aws(tmp_path, aws)
    sql = LakeSql(lake.catalog, lake.storage)
    [moved, *_] = lake.catalog.partitions("ios_prod", "track_order_completed")
    assert "/_v/" in moved.location

    answers: dict[str, pa.Table] = {}
    for example in examples("duckdb"):
        answers[example.text] = sql.query(example.text.replace(SPECTRUM, "ios_prod"))
    [without_rows] = [text for text, answer in answers.items() if len(answer) == 0]
    assert "status='failed'" in without_rows
    assert len(answers) == len(examples("duckdb"))  # no two are the same

    # Arrow, unlike boto3, has to be told that S3 is elsewhere.
    monkeypatch.setattr(fs, "S3FileSystem", partial(fs.S3FileSystem, endpoint_override=aws.url))
    monkeypatch.chdir(tmp_path)
    from_the_lake, from_glue = [_answer_of(example.text) for example in examples("python")]
    per_day = sql.query(examples("duckdb")[0].text)
    assert from_the_lake["orders"].to_pylist() == per_day["orders"].to_pylist()
    total = per_day.to_pandas()["total"].sum()
    assert from_glue == [(sum(per_day["orders"].to_pylist()), total)]

    for command in _commands():
        said = Terminal(capsys).run(*command)
        assert (said.code, "properties_currency" in said.out) == (0, True)


def _commands() -> list[list[str]]:
    [block] = re.findall(r"```sh\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return [shlex.split(line)[1:] for line in block.splitlines()]


def _answer_of(program: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(program, str(PAGE), "exec"), names)
    return names["answer"]


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.language == "sql"], ids=str)
def test_what_is_not_run_is_sql_at_least(example: Any) -> None:
    """DuckDB parses Athena's and Spark's reading statements; those that only they have are few."""
    with duckdb.connect() as connection:
        words = example.text.split()
        if words[0] == "SELECT":
            assert len(connection.extract_statements(_portable(example.text))) == 1
        else:
            assert words[:2] in (["CREATE", "EXTERNAL"], ["SET", words[1]], ["CREATE", "TEMPORARY"])


def _portable(text: str) -> str:
    """Athena writes types with round brackets."""
    return re.sub(r"array\((\w+)\)", r"\1[]", text)


def test_every_block_says_what_runs_it_and_the_page_what_is_not_run() -> None:
    text = PAGE.read_text("utf-8")
    assert len(re.findall(r"^```(sql|python)$", text, re.MULTILINE)) == len(EXAMPLES)
    not_run = [example.text.split()[0] for example in examples("not")]
    assert not_run == ["SELECT", "SELECT", "CREATE"]
    assert "the two statements of Athena's own and `CREATE EXTERNAL SCHEMA`" in text
    [policy] = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    assert json.loads(policy)["Version"] == "2012-10-17"
