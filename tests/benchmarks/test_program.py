"""The benchmark program and its measurements."""

import json
import subprocess
import sys
import time
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


# Takes memory and CPU time, then waits until the measurement has seen both.
BURN = """
import sys, time
from pathlib import Path
folder = Path(sys.argv[1])
held = bytearray(200_000_000)
held[::4096] = b'x' * len(held[::4096])
while time.process_time() < 1: pass
(folder / 'burning').write_text(str(time.process_time()))
(folder / 'burning').rename(folder / 'burned')
deadline = time.monotonic() + 50
while not (folder / 'seen').exists() and time.monotonic() < deadline: time.sleep(0.01)
"""
OUTLIVES = f"""
import subprocess, sys
subprocess.Popen([sys.executable, '-c', {BURN!r}, sys.argv[1]])
"""
# Spark's daemon ignores its Python workers in the same way.
IGNORED = f"""
import signal, subprocess, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
subprocess.Popen([sys.executable, '-c', {BURN!r}, sys.argv[1]]).wait()
"""
# In a separate process, since the measurement adopts and waits for all children.
MEASURE = """
import os, sys
from pathlib import Path
import msgspec
from benchmarks import measure
folder, program = Path(sys.argv[1]), sys.argv[2]
read_memory, read_cpu = measure.memory_of, measure.cpu_of
most = {'memory': 0, 'cpu': 0.0}
def saw(name, value):
    most[name] = max(most[name], value)
    if (folder / 'burned').exists() and most['memory'] > 200e6:
        burned = float((folder / 'burned').read_text())
        is_sampled = 'SIG_IGN' in program  # otherwise Linux reports the CPU time at the end
        if most['cpu'] > 0.95 * burned or not is_sampled:
            (folder / 'seen').touch()
    return value
measure.memory_of = lambda pids: saw('memory', read_memory(pids))
measure.cpu_of = lambda pid: saw('cpu', read_cpu(pid))
measure.adopt_orphans()
measured = measure.measure([sys.executable, '-c', program, str(folder)], folder)
sys.stdout.buffer.write(msgspec.json.encode(measured))
"""


@pytest.mark.parametrize("program", [OUTLIVES, IGNORED])
def test_processes_without_a_waiting_parent_count_with_their_time_and_memory(
    tmp_path: Path, program: str
) -> None:
    command = [sys.executable, "-c", MEASURE, str(tmp_path), program]
    began = time.monotonic()
    measured = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert (tmp_path / "seen").exists()
    burned = float((tmp_path / "burned").read_text())
    assert 0.95 * burned < measured["cpu"] < 1.9 * burned  # counted, and not twice
    assert measured["peak_memory"] > 200e6
    assert 0 < measured["wall"] < time.monotonic() - began
