"""The benchmark itself, as `make bench` runs it, on an archive of seconds."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e
SMALL = ("--events", "2000", "--tables", "30", "--hours", "3", "--files", "3")


@pytest.mark.spark
def test_ours_and_duckdb_make_the_right_tables_and_are_measured(tmp_path: Path) -> None:
    plot = tmp_path / "bench.svg"
    where = ("--folder", str(tmp_path / "bench"), "--save", str(plot))
    command = [sys.executable, "-m", "benchmarks", *SMALL, "--peers", "duckdb", *where]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

    (told,) = (tmp_path / "bench" / "results").glob("*.json")
    outcome = json.loads(told.read_text())
    runs = {run["contestant"]: run for run in outcome["runs"]}
    assert runs.keys() == {"engine", "duckdb"}
    for run in runs.values():
        measured = run["measured"]
        assert run["wrongs"] == []
        assert 0 < measured["ready"] < measured["wall"]
        assert measured["cpu"] > 0.1
        assert measured["peak_memory"] > 50e6
        assert run["files"] == runs["engine"]["files"] > 30
    # The JVM and the Python workers are among what is measured.
    assert runs["engine"]["measured"]["peak_memory"] > 300e6
    assert outcome["floor"]["parse"] > 0
    assert plot.read_text().startswith("<svg")
