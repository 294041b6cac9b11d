"""Dagster's private parts: only one module uses them, and they are as it expects."""

import inspect
import subprocess
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import dagster as dg
from dagster_webserver import app, cli
from dagster_webserver.webserver import DagsterWebserver

from datalake_assets.instance import dagster_private
from tests.support.repo import ROOT

PATTERN = r"\b(dagster[a-z_]*\._[a-z]|from dagster[a-z_]* import _|vars\((app|cli|dev|_cli)\))"


def test_one_module_uses_private_parts_of_dagster() -> None:
    folders = ["datalake_assets", "spark_resources", "eventlake", "benchmarks", "deploy"]
    found = subprocess.run(
        ["grep", "-rlE", "--include=*.py", "--include=*.yaml", PATTERN, *folders, "dagster.yaml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    assert found == [str(Path(dagster_private.__file__).relative_to(ROOT))]


def test_an_upgrade_has_not_changed_them() -> None:
    """If this fails, an upgrade of Dagster needs a change of `dagster_private.py`."""
    logs = dagster_private.NO_COMPUTE_LOGS
    assert inspect.isclass(getattr(import_module(logs["module"]), logs["class"]))
    assert find_spec(f"{dagster_private.DAEMON_MODULE}.__main__")

    dev = import_module("dagster._cli.dev")
    started = inspect.getsource(dev.dev_command_impl)
    assert "open_ipc_subprocess(" in started and '"dagster_webserver"]' in started
    assert callable(import_module("dagster._cli").main)
    assert vars(app)["DagsterWebserver"] is DagsterWebserver and callable(cli.main)
    assert "DagsterWebserver(" in inspect.getsource(app)
    assert "build_middleware" in vars(DagsterWebserver)

    with dg.DagsterInstance.ephemeral() as instance:
        storage = instance.event_log_storage
        assert callable(storage.get_latest_storage_id_by_partition)
        assert callable(storage.get_latest_asset_check_execution_by_key)
