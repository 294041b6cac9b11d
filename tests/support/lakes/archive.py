"""Raw archives and their events, small enough to be read in a test."""

import gzip
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from eventlake.rules import paths
from eventlake.sample import SampleSource, SampleSpec, write_archive
from tests.support.oracles.recount import judge, lines

Line = dict[str, Any] | bytes | str


def track(event: str, id: str | None, at: str, /, **properties: Any) -> dict[str, Any]:
    """A track; `at` is its day and, if not midnight, the time: `2026-10-01T07:30`."""
    return _event("track", id, at) | {"event": event} | _with("properties", properties)


def order(id: str | None, at: str, /, **properties: Any) -> dict[str, Any]:
    return track("Order", id, at, **properties)


def identify(id: str | None, at: str, /, **traits: Any) -> dict[str, Any]:
    return _event("identify", id, at) | _with("traits", traits)


def page(id: str | None, at: str, /, **properties: Any) -> dict[str, Any]:
    return _event("page", id, at) | _with("properties", properties)


def _event(kind: str, id: str | None, at: str) -> dict[str, Any]:
    return {"type": kind, "messageId": id, "receivedAt": at}


def _with(key: str, values: dict[str, Any]) -> dict[str, Any]:
    return {key: values} if values else {}


def as_line(line: Line) -> bytes:
    if isinstance(line, dict):
        return msgspec.json.encode(line)
    return line.encode() if isinstance(line, str) else line


@dataclass(frozen=True)
class RawDay:
    """One day folder of an archive."""

    folder: Path
    clock: list[int]

    def file(self, name: str, *lines: Line, keep: float = 1.0) -> Path:
        """Write a gzipped file, or write it anew; `keep` is the share of it that arrived."""
        content = b"".join(as_line(line) + b"\n" for line in lines)
        packed = gzip.compress(content, compresslevel=1, mtime=0)
        return self.raw(f"{name}.gz", packed[: int(len(packed) * keep)])

    def raw(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        self.folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        # Two writes within a tick of the file system's clock differ, and archives that
        # are made alike are alike.
        self.clock[0] += 1
        os.utime(path, (self.clock[0], self.clock[0]))
        return path


@dataclass(frozen=True)
class Archive:
    """The raw archive of a source."""

    folder: Path
    clock: list[int] = field(default_factory=lambda: [1_790_000_000])

    def day(self, day: str) -> RawDay:
        return RawDay(self.folder / paths.day_folder(date.fromisoformat(day)), self.clock)


def arrivals(root: Path, spec: SampleSpec, source: SampleSource, syncs: int) -> Iterator[list[str]]:
    """Puts the files there, portion by portion: in order, but every fifth is two syncs late."""
    waiting = root.with_name(f"{root.name}-waiting")
    files = write_archive(waiting, spec, sources=[source]).files[source.id]
    portions: list[list[str]] = [[] for _ in range(syncs)]
    for place, path in enumerate(sorted(file.path for file in files)):
        late = 0 if place % 5 else 2
        portions[min(place * syncs // len(files) + late, syncs - 1)].append(path)
    for portion in portions:
        assert portion
        for path in portion:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            os.replace(waiting / path, root / path)
        yield portion


def message_ids(root: Path, paths: list[str]) -> Iterator[str]:
    """The ids in raw files, by Python's own JSON, one for each line."""
    for path in paths:
        for line in lines(root / path):
            yield str(judge(line)[2]["messageId"])
