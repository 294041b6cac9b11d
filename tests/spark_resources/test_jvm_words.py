"""What comes through of the JVM's words; that a session has none, the demo's test shows."""

import os
import subprocess
import threading
from collections.abc import Callable

import pytest

from spark_resources.engines.jvm_stderr import without_greeting


@pytest.fixture
def wait_for_the_pump() -> Callable[[], None]:
    """Only for the test's own: that of an earlier test's JVM lives as long as this one."""
    others = set(threading.enumerate())

    def wait() -> None:
        for thread in set(threading.enumerate()) - others:
            thread.join(timeout=30)

    return wait


def test_the_greeting_is_cut_and_all_else_comes_through(
    capfd: pytest.CaptureFixture[str], wait_for_the_pump: Callable[[], None]
) -> None:
    says = "echo 'WARNING: Using incubator modules: jdk.incubator.vector' >&2; echo help >&2"
    with without_greeting():
        subprocess.run(["sh", "-c", says], check=True)
    os.write(2, b"after\n")
    wait_for_the_pump()
    assert sorted(capfd.readouterr().err.splitlines()) == ["after", "help"]


def test_it_is_passed_on_for_as_long_as_the_program_lives(
    capfd: pytest.CaptureFixture[str], wait_for_the_pump: Callable[[], None]
) -> None:
    with without_greeting():
        talker = subprocess.Popen(
            ["sh", "-c", "read line; echo late >&2"], stdin=subprocess.PIPE, text=True
        )
    talker.communicate("go\n")
    wait_for_the_pump()
    assert capfd.readouterr().err == "late\n"
