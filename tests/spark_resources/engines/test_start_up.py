"""Java starts from an archive of classes where there is one, and without a word where not."""

import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_resources.engines import java
from spark_resources.engines.java import JAVA_OPTIONS, with_archive, without_greeting


def test_without_an_archive_the_settings_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    assert with_archive({"a": "b"}) == {"a": "b"}


def test_an_archive_is_handed_to_java_beside_its_other_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    java.archive().parent.mkdir(parents=True)
    java.archive().touch()
    given, *added = with_archive({JAVA_OPTIONS: "-Xmx1g"})[JAVA_OPTIONS].split()
    assert given == "-Xmx1g"
    assert f"-XX:SharedArchiveFile={java.archive()}" in added


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
