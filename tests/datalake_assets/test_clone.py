"""Dagster's own commands in a fresh clone: no lake.yaml, no $DAGSTER_HOME, no variables."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.support.repo import ROOT, heed_signals, page_at, reserved_port

pytestmark = pytest.mark.e2e
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the repository as they are now, and nothing that git ignores."""
    folder = tmp_path_factory.mktemp("clone")
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.check_output(listed, cwd=ROOT, text=True).split("\0")
    for name in filter(None, names):
        found = ROOT / name
        if name == ".venv" or not found.exists():
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if found.is_symlink():
            (folder / name).symlink_to(os.readlink(found))
        else:
            (folder / name).write_bytes(found.read_bytes())
    return folder


def environ(folder: Path) -> dict[str, str]:
    ours = ("DAGSTER", "DATALAKE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    path = os.pathsep.join([str(BIN), kept.get("PATH", "")])
    return kept | {"PATH": path, "PYTHONPATH": str(folder), "COLUMNS": "160"}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("dg check defs", "All definitions loaded successfully"),
        ("dg check toml", "All TOML configuration files are valid"),
        ("dg check yaml", "validated successfully"),
        ("dg list defs", "no_lake_yaml_yet"),
        ("dagster definitions validate", "Validation successful"),
    ],
)
def test_a_command_ends_well(clone: Path, command: str, expected: str) -> None:
    program, *words = command.split()
    done = subprocess.run(
        [BIN / program, *words],
        cwd=clone,
        env=environ(clone),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert expected in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("command", ["dagster dev", "dagster dev -w workspace.yaml", "dg dev"])
def test_the_ui_shows_what_to_do(clone: Path, command: str) -> None:
    program, *words = command.split()
    with reserved_port() as port:
        log = clone.parent / f"{port}.log"
        with (
            log.open("w") as output,
            subprocess.Popen(
                [BIN / program, *words, "--port", str(port)],
                cwd=clone,
                env=environ(clone),
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=heed_signals,
            ) as process,
        ):
            try:
                page_at(f"http://127.0.0.1:{port}/server_info", seconds=120)
                assert _assets(port) == {"no_lake_yaml_yet"}, log.read_text()
                assert "Traceback" not in log.read_text()
            finally:
                os.killpg(process.pid, signal.SIGINT)
                process.wait(timeout=60)


def _assets(port: int) -> set[str]:
    query = json.dumps({"query": "{ assetNodes { assetKey { path } } }"}).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/graphql", query, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        found: Any = json.load(answer)
    return {"/".join(node["assetKey"]["path"]) for node in found["data"]["assetNodes"]}
