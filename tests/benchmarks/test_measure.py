"""The measurement includes processes that outlive the program or whose parent does not wait."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

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
