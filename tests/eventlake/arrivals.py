"""A sample archive of one source whose files come in over many syncs, some of them late."""

import os
from collections.abc import Iterator
from pathlib import Path

from eventlake.sample import SampleSource, SampleSpec, write_archive
from tests.eventlake.sample.recount import judge, lines


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
