"""The repository as a whole: pins, make targets, Dagster's files, docs."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import dagster as dg
import pytest
import yaml
from packaging.requirements import Requirement

from tests.support.repo import ROOT

PACKAGES = ("eventlake", "spark_resources", "datalake_assets")


def test_annotations_are_real_objects_since_dagster_reads_them() -> None:
    modules = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert [path for path in modules if "from __future__" in path.read_text("utf-8")] == []


def test_the_wheel_has_all_files_of_the_packages_and_is_built_without_warnings(
    tmp_path: Path,
) -> None:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    command = "from setuptools import build_meta; print(build_meta.build_wheel('out'))"
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "absent from the `packages` configuration" not in done.stdout + done.stderr
    with ZipFile(tmp_path / "out" / done.stdout.splitlines()[-1]) as wheel:
        packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *PACKAGES],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert packed == {name for name in files.stdout.split() if not name.endswith(".md")}


def pins(name: str) -> dict[str, str]:
    """Package to version, by a requirements file."""
    text = (ROOT / name).read_text()
    return dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", text, flags=re.MULTILINE))


@pytest.mark.parametrize(
    "name", ["requirements.txt", "requirements-spark40.txt", "requirements-spark41.txt"]
)
def test_the_pins_have_hashes_and_come_from_whatever_registry_is_set_up(name: str) -> None:
    lines = [line.split("#")[0].strip() for line in (ROOT / name).read_text().splitlines()]
    allowed = re.compile(r"([a-z0-9._-]+==\S+ \\|--hash=sha256:[0-9a-f]{64}( \\)?)?")
    assert [line for line in lines if not allowed.fullmatch(line)] == []


def test_every_dependency_is_pinned_within_its_range_and_the_second_spark_to_the_clusters() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = map(Requirement, project["dependencies"] + project["optional-dependencies"]["dev"])
    pinned = pins("requirements.txt")
    assert [
        str(need) for need in declared if not need.specifier.contains(pinned[need.name.lower()])
    ] == []
    for version in ("4.0.", "4.1."):
        file = f"requirements-spark{version.replace('.', '')}.txt"
        assert pins(file)["pyspark"].startswith(version)


def test_make_alone_lists_every_target_and_ci_runs_existing_ones() -> None:
    text = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", text, flags=re.MULTILINE))
    listed = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"^  make (\S+)  +\S", listed, flags=re.MULTILINE)) == targets
    assert {"setup", "demo", "dev", "test", "lint", "types"} <= targets
    steps = set(re.findall(r"^run make (\S+)$", (ROOT / ".ci/run").read_text(), re.MULTILINE))
    assert "test" in steps and steps <= targets


def test_dagster_reads_our_instance_file_and_sends_no_telemetry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.delenv("DAGSTER_PG_URL", raising=False)
    (tmp_path / "dagster.yaml").symlink_to(ROOT / "dagster.yaml")
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert not instance.telemetry_enabled
        assert instance.run_monitoring_enabled
        queue = instance.get_concurrency_config().run_queue_config
        assert queue is not None
        assert queue.max_concurrent_runs == 10


def test_the_workspace_names_our_code_location() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["dagster"]
    [location] = yaml.safe_load((ROOT / "workspace.yaml").read_text())["load_from"]
    names = {"module_name": project["module_name"], "location_name": project["code_location_name"]}
    assert location == {"python_module": names}


def test_the_drawing_of_the_rooms_is_current() -> None:
    command = [sys.executable, "scripts/draw_rooms.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("eventlake/**/*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_paths_in_the_docs_exist(page: Path) -> None:
    text = page.read_text()
    links = [page.parent / to for to in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text)]
    named = re.findall(
        r"`((?:eventlake|spark_resources|datalake_assets|tests|scripts|infra)/[\w./-]*)", text
    )
    expected = [*(to for to in links if "://" not in str(to) and ":/" not in str(to))]
    expected += [ROOT / path for path in named]
    assert [str(path) for path in expected if not path.exists()] == []


CONTRIBUTORS = ["CONTRIBUTING.md", "docs/architecture.md", "eventlake/columnar/README.md"]


@pytest.mark.parametrize("page", CONTRIBUTORS)
def test_the_pages_for_contributors_name_what_the_code_has(page: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)
    sources = [*(path for p in PACKAGES for path in (ROOT / p).rglob("*.py")), ROOT / "Makefile"]
    sources += [*(ROOT / "tests").rglob("*.py"), ROOT / "pyproject.toml", ROOT / ".ci/run"]
    known = {w for path in sources for w in re.findall(r"\w+", f"{path} {path.read_text()}")}
    named = {
        w for code in re.findall(r"`([^`\n=]+)`", text) for w in re.findall(r"[A-Za-z_]\w+", code)
    }
    assert named - known == set()
    for name, path in re.findall(r"`(\w+)`[^|`;]*? in `([\w/]+\.py)`", text):
        assert re.search(rf"\b{name}\b", (ROOT / path).read_text()), (name, path)


def test_every_room_is_in_the_tables_of_the_architecture() -> None:
    tables, _ = (ROOT / "docs/architecture.md").read_text().split("<!-- rooms: begin")
    rows = re.findall(r"^\| (`[^|]*) \|", tables, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    rooms = {path.stem for package in PACKAGES for path in (ROOT / package).glob("[!_]*")}
    assert rooms - named - {"dagster", "workspace", "workspace_served", "py"} == set()


def test_the_time_comes_from_the_clock() -> None:
    modules = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    reading = {path.stem for path in modules if "datetime.now(" in path.read_text("utf-8")}
    assert reading == {"clock", "lease"}
