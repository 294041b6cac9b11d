"""The set-up script on machines that lack something: what it says, and that it writes nothing."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.repo import ROOT

TOOLS = ("bash", "cat", "dirname", "env", "head", "id", "sed", "sh")


class Machine:
    """A folder with a copy of the scripts, and a PATH that holds only what a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.repo, self.bin = folder / "repo", folder / "bin"
        shutil.copytree(ROOT / "scripts", self.repo / "scripts")
        self.bin.mkdir()
        for tool in TOOLS:
            path = shutil.which(tool)
            assert path is not None, tool
            (self.bin / tool).symlink_to(path)

    def has(self, name: str, script: str) -> Path:
        """Puts a small program on the PATH."""
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def has_java(self, version: str) -> Path:
        return self.has("java", f"""echo 'openjdk version "{version}" 2025-04-15' >&2""")

    def bash(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.bin / "bash", *arguments],
            cwd=self.repo,
            env={"PATH": str(self.bin), **environ},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with a good Python, no Java, and no way to install one."""
    machine = Machine(tmp_path)
    machine.has("python3", f'exec {sys.executable} "$@"')
    return machine


def refused(machine: Machine, **environ: str) -> str:
    """The message of a set-up that fails and changes nothing."""
    result = machine.bash("scripts/setup", **environ)
    assert result.returncode == 2, result.stdout + result.stderr
    assert [path.name for path in machine.repo.iterdir()] == ["scripts"]
    return result.stderr


def test_a_python_too_old_is_named_with_what_is_needed(machine: Machine) -> None:
    machine.has("python3", "case $2 in *print*) echo 3.9 ;; *) exit 1 ;; esac")
    said = refused(machine)
    assert "Python 3.11 or newer is needed; found: python3 (3.9)" in said
    assert "make setup PYTHON=" in said


def test_for_a_python_without_venv_the_package_is_named(machine: Machine) -> None:
    machine.has(
        "python3",
        "case $2 in *ensurepip*) exit 1 ;; *_info\\[*) echo 3.11 ;; *_base*) echo python3 ;; esac",
    )
    assert "apt-get install python3.11-venv" in refused(machine)


def test_without_java_and_package_manager_the_message_explains_how(machine: Machine) -> None:
    said = refused(machine)
    assert "Java 17 or newer is needed; found: none" in said
    assert "apt-get install openjdk-17-jre-headless" in said


def test_java_is_not_installed_without_permission(machine: Machine) -> None:
    machine.has("id", "echo 1000")
    machine.has("apt-get", ": > called")
    machine.has("sudo", "exit 1")
    assert "sudo apt-get install" in refused(machine)


def test_an_old_java_in_java_home_is_not_bypassed_since_spark_would_take_it(
    machine: Machine, tmp_path: Path
) -> None:
    old = tmp_path / "jdk8" / "bin"
    old.mkdir(parents=True)
    machine.has_java("1.8.0_402").rename(old / "java")
    machine.has_java("17.0.15")
    said = refused(machine, JAVA_HOME=str(old.parent))
    assert f"found: {old}/java of JAVA_HOME (version 8)" in said


def test_root_gets_the_first_java_that_the_system_offers(machine: Machine) -> None:
    machine.has("id", "echo 0")
    machine.has_java("21.0.4").rename(machine.repo / "java21")
    machine.has(
        "apt-get",
        'case "$*" in update*) ;; *17*) exit 100 ;; *21*) mv java21 "${0%/*}/java" ;; esac',
    )
    machine.has("mv", f'exec {shutil.which("mv")} "$@"')
    said = machine.bash("-c", ". scripts/system.sh; . scripts/java.sh; require_java; echo $found")
    assert said.stdout.splitlines()[1:] == [
        "  apt-get install openjdk-17-jre-headless",
        "  apt-get install openjdk-21-jre-headless",
        "21",
    ]


@pytest.mark.parametrize(
    ("version", "enough"),
    [("1.8.0_402", False), ("11.0.22", False), ("17", True), ("17.0.15", True), ("21-ea", True)],
)
def test_the_version_of_java_is_read_right(machine: Machine, version: str, enough: bool) -> None:
    machine.has_java(version)
    said = machine.bash("-c", ". scripts/system.sh; . scripts/java.sh; find_java")
    assert (said.returncode == 0) == enough
