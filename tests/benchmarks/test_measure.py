"""Nothing that a program starts escapes the measuring, not even what outlives it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# Takes memory and burns CPU time in a process whose parent does not wait for it.
BURN = """
import time
held = bytearray(200_000_000)
held[::4096] = b'x' * len(held[::4096])
began = time.process_time()
while time.process_time() - began < 2: pass
"""
LEAVES_IT = f"""
import subprocess, sys, time
subprocess.Popen([sys.executable, '-c', {BURN!r}])
time.sleep(0.8)
"""
# As Spark's daemon does with its Python workers.
FORGETS_IT = f"""
import signal, subprocess, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
subprocess.Popen([sys.executable, '-c', {BURN!r}]).wait()
"""
# In a process of its own, since it takes over whatever children there are.
MEASURE = """
import sys
from pathlib import Path
import msgspec
from benchmarks.measure import measure
from benchmarks.process_tree import adopt_orphans
adopt_orphans()
measured = measure([sys.executable, '-c', sys.argv[2]], Path(sys.argv[1]))
sys.stdout.buffer.write(msgspec.json.encode(measured))
"""


@pytest.mark.parametrize("program", [LEAVES_IT, FORGETS_IT])
def test_what_nobody_waits_for_counts_with_its_time_and_memory(
    tmp_path: Path, program: str
) -> None:
    command = [sys.executable, "-c", MEASURE, str(tmp_path), program]
    measured = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert 1.5 < measured["cpu"] < 4  # of 2 seconds and the start of three processes
    assert measured["peak_memory"] > 200e6
    assert measured["wall"] > 0.8
