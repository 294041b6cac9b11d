"""What goes to a cluster: all that a job imports, once per version, the same every time."""

import ast
import platform
import re
import subprocess
import sys
import zipfile
from importlib.metadata import distribution, packages_distributions
from io import BytesIO
from pathlib import Path

import pytest

from eventlake.storage import LocalStorage
from spark_resources.shipping import ship as shipping
from spark_resources.shipping.environment import (
    Target,
    environment_version,
    machines,
    pins,
    write_environment,
    write_zip,
)
from spark_resources.shipping.ship import code_zip, start_script, version_of
from spark_resources.workers import emr_start
from tests.support.lakes.on_emr import Heard
from tests.support.servers.emr_node import PYTHON

HERE = Target(platform.machine(), PYTHON)
# The cluster's own, and what only commands import that never run there.
NOT_SHIPPED = {"pyspark", "duckdb", "yaml"}


def shipped_modules() -> dict[str, ast.Module]:
    with zipfile.ZipFile(BytesIO(code_zip())) as archive:
        return {name: ast.parse(archive.read(name)) for name in archive.namelist()}


def imported(module: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def test_everything_that_shipped_code_imports_is_shipped_too() -> None:
    needed = set().union(*map(imported, shipped_modules().values()))
    foreign = needed - set(sys.stdlib_module_names) - {"eventlake", "spark_resources"} - NOT_SHIPPED
    providers = {module: set(names) for module, names in packages_distributions().items()}
    shipped = set(pins(HERE))

    missing = {
        module
        for module in foreign
        if not {name.lower().replace("_", "-") for name in providers[module]} & shipped
    }
    assert missing == set()


def test_neither_dagster_nor_the_engines_are_shipped() -> None:
    modules = shipped_modules()
    assert {"dagster"} & set().union(*map(imported, modules.values())) == set()
    assert not any(name.startswith("spark_resources/emr/") for name in modules)
    assert "spark_resources/workers/emr_main.py" in modules


def test_the_start_has_nothing_but_pythons_own_library() -> None:
    own = imported(ast.parse(start_script())) - {"spark_resources"}
    assert own <= set(sys.stdlib_module_names)


def test_packages_have_the_versions_that_are_tested_here() -> None:
    assert pins(HERE)["pyarrow"] == distribution("pyarrow").version
    assert {"boto3", "botocore", "dagster-pipes", "pandas", "pydantic-core"} <= set(pins(HERE))
    assert {"pyspark", "dagster", "duckdb"} & set(pins(HERE)) == set()


def test_versions_change_with_what_is_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert version_of(b"a", b"b") == version_of(b"a", b"b") != version_of(b"ab", b"")
    versions = {environment_version(Target(m, p)) for m in ("x", "y") for p in ("3.11", "3.12")}
    assert len(versions) == 4


def test_the_same_files_make_the_same_zip(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    first, second = BytesIO(), BytesIO()
    write_zip(first, {"a": tmp_path / "a"})
    (tmp_path / "a").touch(mode=0o777)
    write_zip(second, {"a": tmp_path / "a"})
    assert first.getvalue() == second.getvalue()


def test_code_and_packages_are_brought_once_per_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Target] = []

    def write(target: Target, out: BytesIO) -> None:
        made.append(target)
        out.write(b"packages")

    monkeypatch.setattr(shipping, "write_environment", write)
    storage, heard = LocalStorage(str(tmp_path)), Heard()
    first = shipping.ship(storage, HERE, heard)
    again = shipping.ship(storage, HERE, heard)
    other = shipping.ship(storage, Target("another", PYTHON), heard)

    assert first == again and made == [HERE, Target("another", PYTHON)]
    assert (other.code, other.start) == (first.code, first.start)
    assert Path(first.environment).read_bytes() == b"packages"
    assert Path(first.start).read_bytes() == Path(emr_start.__file__).read_bytes()
    assert "segment-data/_state/code/" in first.code
    assert len(heard.logged) == 2


def test_packages_without_tests_headers_and_services_that_are_not_used(tmp_path: Path) -> None:
    small = Target(HERE.machine, HERE.python)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spark_resources.shipping.environment.ROOTS", ("botocore", "msgspec"))
        content = BytesIO()
        write_environment(small, content)
    with zipfile.ZipFile(content) as archive:
        names = archive.namelist()

    assert "msgspec/__init__.py" in names and "botocore/data/endpoints.json" in names
    assert any(name.startswith("botocore/data/glue/") for name in names)
    assert not any(name.startswith("botocore/data/ec2/") for name in names)
    assert not any(name.endswith(".pyi") for name in names)


def test_packages_come_compiled(tmp_path: Path) -> None:
    """With nothing to compile and nothing to write beside them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spark_resources.shipping.environment.ROOTS", ("jmespath",))
        content = BytesIO()
        write_environment(HERE, content)
    with zipfile.ZipFile(content) as archive:
        archive.extractall(tmp_path)
    told = subprocess.run(
        [sys.executable, "-S", "-v", "-c", "import jmespath"],
        env={"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stderr

    loaded = re.findall(rf"code object from '?({tmp_path}/[^'\n]*)", told)
    assert loaded and all(path.endswith(".pyc") for path in loaded)


@pytest.mark.parametrize(
    ("kind", "machine"),
    [
        ("m5.xlarge", "x86_64"),
        ("m7g.2xlarge", "aarch64"),
        ("c6gd.large", "aarch64"),
        ("g4dn.xlarge", "x86_64"),
        ("r5b.large", "x86_64"),
        ("is4gen.large", "aarch64"),
        ("u-6tb1.metal", "x86_64"),
    ],
)
def test_gravitons_are_told_by_the_name_of_their_family(kind: str, machine: str) -> None:
    assert list(machines(frozenset({kind}))) == [machine]


def test_the_driver_fetches_packages_once_and_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []

    def fetch(uri: str, target: Path) -> None:
        fetched.append(uri)
        with zipfile.ZipFile(target, "w") as archive:
            archive.writestr("one.py", "x = 1")

    monkeypatch.setattr(emr_start, "fetch", fetch)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    uri = "s3://bucket/segment-data/_state/code/abc/environment.zip"
    folder = emr_start.unpacked(uri)

    assert (folder / "one.py").read_text() == "x = 1"
    assert emr_start.unpacked(uri) == folder
    assert fetched == [uri]
