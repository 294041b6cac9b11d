"""Who takes part: how each is started, and where its tables are to be found afterwards."""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from benchmarks.archive import RAW, Archive
from benchmarks.recipe import SOURCE

ROOT = Path(__file__).absolute().parent.parent
Tables: TypeAlias = dict[str, list[Path]]

_BIN = Path(sys.executable).parent
_PEERS_PYTHON = ROOT / ".bench-venv" / "bin" / "python"
_MOST_TABLES = 100_000


@dataclass(frozen=True)
class Contestant:
    """A program that makes tables in a folder of its own out of an archive."""

    name: str
    command: Callable[[Path, Path], list[str]]  # from the archive's and its own folder
    tables: Callable[[Path], Tables]
    prepare: Callable[[Path, Archive], None] = lambda folder, archive: None
    environment: Callable[[Path], Mapping[str, str]] = field(default=lambda folder: {})
    has_hours: bool = True  # whether its tables are partitioned by day and hour


def lake_folder(folder: Path, archive: Archive) -> None:
    """A lake with the archive and nothing else in it."""
    archive.link_into(folder / "lake")
    settings = {
        "workspace_id": "BENCH",
        "storage": "./lake",
        "limits": {"tables": _MOST_TABLES},
        "sources": [{"id": SOURCE.id, "slug": SOURCE.slug}],
    }
    (folder / "lake.yaml").write_text(json.dumps(settings))  # which is YAML, too


def engine_command(archive: Path, folder: Path) -> list[str]:
    return [sys.executable, "-m", "benchmarks.ours.engine", str(folder / "lake.yaml")]


def lake_tables(folder: Path) -> Tables:
    """Of a lake in which every partition was written once."""
    data = folder / "lake" / "segment-data" / "data" / SOURCE.id
    return _parquet_by_folder(data, "segment_type=")


def _datalake(archive: Path, folder: Path) -> list[str]:
    return [str(_BIN / "datalake"), "--config", str(folder / "lake.yaml"), "sync"]


def _dagster_home(folder: Path) -> Mapping[str, str]:
    home = folder / "dagster"
    home.mkdir()
    (home / "dagster.yaml").symlink_to(ROOT / "dagster.yaml")
    return {"DAGSTER_HOME": str(home)}


def _peer(python: Path, module: str) -> Callable[[Path, Path], list[str]]:
    def command(archive: Path, folder: Path) -> list[str]:
        return [
            *(str(python), "-m", f"benchmarks.peers.{module}"),
            *(str(archive / RAW), str(folder / "tables")),
        ]

    return command


def _peer_tables(folder: Path) -> Tables:
    return _parquet_by_folder(folder / "tables")


def _dlt_tables(folder: Path) -> Tables:
    tables = _parquet_by_folder(folder / "tables" / "events")
    return {name: files for name, files in tables.items() if not name.startswith("_dlt")}


def _parquet_by_folder(above: Path, prefix: str = "") -> Tables:
    return {
        folder.name.removeprefix(prefix): files
        for folder in sorted(above.glob(f"{prefix}*"))
        if (files := sorted(folder.rglob("*.parquet")))
    }


_OURS = Path(sys.executable)
ENGINE = Contestant("engine", engine_command, lake_tables, lake_folder)
CONTESTANTS = {
    contestant.name: contestant
    for contestant in (
        ENGINE,
        Contestant("command", _datalake, lake_tables, lake_folder, _dagster_home),
        Contestant("duckdb", _peer(_OURS, "duckdb_peer"), _peer_tables),
        Contestant("pyspark", _peer(_OURS, "pyspark_peer"), _peer_tables),
        Contestant("dlt", _peer(_PEERS_PYTHON, "dlt_peer"), _dlt_tables, has_hours=False),
    )
}
