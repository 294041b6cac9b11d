"""The program as `make bench` runs it, on small archives."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SMALL = ("--events", "2000", "--tables", "30", "--hours", "3", "--files", "3")
# Replaces the engine by the DuckDB script, and adds one whose tables have a wrong number.
WITH_A_WRONG_RESULT = """
import sys
from dataclasses import replace
from pathlib import Path
import pyarrow.compute as pc
import pyarrow.parquet as pq
from benchmarks.__main__ import app
from benchmarks.contestants import CONTESTANTS
duckdb = CONTESTANTS['duckdb']
def damaged(folder):
    tables = duckdb.tables(folder)
    file = tables['page'][0]
    page = pq.read_table(file, partitioning=None)
    index = page.column_names.index('context_screen_width')
    wider = pc.add(page.column(index), 1)
    pq.write_table(page.set_column(index, 'context_screen_width', wider), file)
    return tables
CONTESTANTS['engine'] = replace(duckdb, name='engine')
CONTESTANTS['damaged'] = replace(duckdb, name='damaged', tables=damaged)
app(sys.argv[1:])
"""


def outcome(folder: Path) -> dict[str, Any]:
    (saved,) = (folder / "results").glob("*.json")
    return json.loads(saved.read_text())


@pytest.mark.e2e
@pytest.mark.spark
def test_the_engine_and_duckdb_make_correct_tables_and_are_measured(tmp_path: Path) -> None:
    chart = tmp_path / "bench.svg"
    options = (*SMALL, "--peers", "duckdb", "--folder", str(tmp_path / "bench"))
    command = [sys.executable, "-m", "benchmarks", "peers", *options, "--save", str(chart)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

    saved = outcome(tmp_path / "bench")
    runs = {run["contestant"]: run for run in saved["runs"]}
    assert runs.keys() == {"engine", "duckdb"}
    for run in runs.values():
        measured = run["measured"]
        assert run["errors"] == []
        assert 0 < measured["ready"] < measured["wall"]
        assert measured["cpu"] > 0.1
        assert measured["peak_memory"] > 50e6
        assert run["files"] == runs["engine"]["files"] > 30
    # The measurement includes the JVM and the Python workers.
    assert runs["engine"]["measured"]["peak_memory"] > 300e6
    assert saved["floor"]["parse"] > 0
    assert chart.read_text().startswith("<svg")


@pytest.mark.e2e
def test_one_wrong_result_fails_the_benchmark(tmp_path: Path) -> None:
    options = (*SMALL, "--peers", "damaged", "--no-floor", "--folder", str(tmp_path))
    command = [sys.executable, "-c", WITH_A_WRONG_RESULT, "peers", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "page: the sum of contextscreenwidth is" in done.stdout
    errors = {run["contestant"]: run["errors"] for run in outcome(tmp_path)["runs"]}
    assert errors["engine"] == []
    assert len(errors["damaged"]) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["peers", "--peers", "duckdb,oracle"], "unknown: oracle; choose from engine"),
        (["growth", "--only", "weeks"], "unknown: weeks; choose from events"),
    ],
)
def test_unknown_names_are_refused(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # one line for the message
    command = [sys.executable, "-m", "benchmarks", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert message in done.stderr
