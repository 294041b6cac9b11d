"""What goes to a cluster: all that a job imports, once per version, the same every time."""

import ast
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.metadata import distribution, packages_distributions
from io import BytesIO
from pathlib import Path

import pytest

from eventlake.columnar.private_folder import VARIABLE, private_folder
from eventlake.storage import LocalStorage
from spark_resources import shipping
from spark_resources.shipping import (
    Target,
    code_files,
    code_version,
    environment_version,
    machines,
    pins,
    write_environment,
    write_zip,
)
from spark_resources.workers import emr_start
from spark_resources.workers.emr_start import unpacked
from tests.support.lakes.on_emr import Heard
from tests.support.servers.emr_node import PYTHON

HERE = Target(platform.machine(), PYTHON)
# The cluster's own, what only commands import that never run there, and what is optional.
NOT_SHIPPED = {"pyspark", "duckdb", "yaml", "pandas", "polars"}
# Extras: a metastore is asked by the driver alone; docs/azure.md says what workers need.
NOT_SHIPPED |= {"azure", "pymetastore", "puresasl", "requests", "thrift"}


def shipped_modules() -> dict[str, ast.Module]:
    return {name: ast.parse(file.read_bytes()) for name, file in code_files().items()}


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
    start = ast.parse(Path(emr_start.__file__).read_bytes())
    first = [node for node in start.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert imported(ast.Module([*first], [])) <= set(sys.stdlib_module_names)


def test_packages_have_the_versions_that_are_tested_here() -> None:
    assert pins(HERE)["pyarrow"] == distribution("pyarrow").version
    assert {"boto3", "botocore", "dagster-pipes", "pydantic-core"} <= set(pins(HERE))
    assert {"pyspark", "dagster", "duckdb", "pandas"} & set(pins(HERE)) == set()


def test_versions_change_with_what_is_in_them(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    seen = set()
    for name, content in (
        ("a.py", "x = 1"),
        ("b.py", "x = 1"),
        ("a.py", "x = 2"),
        ("a.py", "x = 1"),
    ):
        file.write_text(content)
        seen.add(code_version({name: file}))
    assert len(seen) == 3
    versions = {environment_version(Target(m, p)) for m in ("x", "y") for p in ("3.11", "3.12")}
    assert len(versions) == 4


def test_the_same_files_make_the_same_zip(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    first, second = BytesIO(), BytesIO()
    write_zip(first, {"a": tmp_path / "a"})
    (tmp_path / "a").touch(mode=0o777)
    write_zip(second, {"a": tmp_path / "a"})
    assert first.getvalue() == second.getvalue()


def test_code_and_packages_are_shipped_once_per_version(
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
        patch.setattr("spark_resources.shipping.ROOTS", ("botocore", "msgspec"))
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
        patch.setattr("spark_resources.shipping.ROOTS", ("jmespath",))
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
def test_gravitons_are_recognised_by_their_family(kind: str, machine: str) -> None:
    assert list(machines(frozenset({kind}))) == [machine]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    private_folder.cache_clear()
    yield tmp_path / "cache"
    private_folder.cache_clear()


def write_package(target: Path) -> None:
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("shipped_package/__init__.py", "x = 1")


def test_the_driver_fetches_packages_once_and_then_runs_the_job(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []

    def copy(uri: str, target: str) -> None:
        fetched.append(uri.rpartition("/")[2])
        write_package(Path(target))

    monkeypatch.setattr(emr_start, "copy", copy)
    monkeypatch.setattr("spark_resources.workers.emr_main.main", imported_package)
    monkeypatch.setattr(sys, "path", list(sys.path))
    uris = [f"s3://bucket/segment-data/_state/code/abc/{name}.zip" for name in ("code", "packages")]

    assert emr_start.main([*uris, "a", "b"]) == 2
    assert emr_start.main([*uris, "a", "b"]) == 2
    assert fetched == ["code.zip", "packages.zip", "code.zip"]


def imported_package(arguments: list[str]) -> int:
    return len(arguments) * int(import_module("shipped_package").x)


def test_packages_are_unpacked_once_per_version_and_machine(cache: Path) -> None:
    with ThreadPoolExecutor(4) as several:
        [folder] = set(several.map(lambda _: unpacked("v1", write_package), range(4)))
    assert folder.is_relative_to(cache)
    made = folder.stat().st_mtime_ns
    assert unpacked("v1", write_package).stat().st_mtime_ns == made
    assert unpacked("v2", write_package) != folder


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.unlink(),
        lambda file: file.write_bytes(b"x"),
        lambda file: file.write_bytes(b"#" * file.stat().st_size),
        lambda file: file.rename(file.with_suffix(".old")),
        lambda file: shutil.rmtree(file.parent),
    ],
    ids=["removed", "cut", "changed", "renamed", "the whole package removed"],
)
def test_damaged_packages_are_unpacked_again(cache: Path, damage: Callable[[Path], None]) -> None:
    file = unpacked("v", write_package) / "shipped_package/__init__.py"
    damage(file)
    assert unpacked("v", write_package) == file.parents[1]
    assert file.read_text() == "x = 1"


SOME_KERNELS = """
import eventlake
import numpy as np
from eventlake.columnar.compiled import cache_folder, checked_cache, kernels
from eventlake.columnar.memory import address
from eventlake.columnar.numbers import decimal
from eventlake.columnar.timestamps import timestamp
text = np.frombuffer(b"12.5" + bytes(16), np.uint8)
with checked_cache():
    decimal(address(text), 0, 4)
    timestamp(address(text), 0, 4)
print(eventlake.__file__, cache_folder(), *kernels(), sep="\\n")
"""


def test_kernels_are_checked_and_loaded_wherever_the_code_is_unpacked(tmp_path: Path) -> None:
    """Damaged machine code is compiled again."""

    def start(run: str) -> tuple[Path, int, int]:
        code = tmp_path / run / "code"
        for name, file in code_files().items():
            (code / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, code / name)
        lines = subprocess.run(
            [sys.executable, "-P", "-c", SOME_KERNELS],
            cwd=code.parent,
            env=os.environ | {"PYTHONPATH": "./code", VARIABLE: str(tmp_path / "cache")},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        assert Path(code.parent, lines[0]).is_relative_to(code)
        assert Path(lines[1]).is_relative_to(tmp_path / "cache")
        return Path(lines[1]), int(lines[2]), int(lines[3])

    folder, _, compiled = start("first")
    assert compiled > 0
    _, cached, again = start("second")
    assert (cached > 0, again) == (True, 0)
    damaged = max(folder.glob("*.nbc"), key=lambda file: file.stat().st_size)
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    _, cached, again = start("third")
    assert cached > 0 and 0 < again < compiled
    assert start("fourth")[2] == 0
