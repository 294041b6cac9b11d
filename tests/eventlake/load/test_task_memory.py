"""Tasks keep to the memory of the settings, whatever the raw files contain."""

import subprocess
import sys

import pytest

from eventlake.load.warm_up import warm_up
from eventlake.settings.models import TASK_MEMORY_MB
from tests.support.lakes.worst_input import KINDS

LEAST_MB = 640


def peak(kind: str, task_memory: int, size: int) -> int:
    warm_up()  # compiling takes memory, too
    module = "tests.support.lakes.worst_input"
    command = [sys.executable, "-m", module, kind, str(task_memory), str(size)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout.split()[1])


@pytest.mark.parametrize("kind", ["short values", "decimals"])
def test_a_task_keeps_to_its_memory(kind: str) -> None:
    assert peak(kind, LEAST_MB, 60) < LEAST_MB


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_a_task_keeps_to_its_memory_with_the_worst_input(kind: str) -> None:
    assert peak(kind, TASK_MEMORY_MB, 1_000) < TASK_MEMORY_MB
