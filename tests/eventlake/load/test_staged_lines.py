"""Raw files are read once: the lines that the record log needs come from what staging kept."""

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventlake.columnar.raw_lines import BYTE_ORDER_MARK
from eventlake.load import staged_lines
from eventlake.load.blobs import BlobKind, unpacked
from eventlake.load.seen import position
from eventlake.load.staged_lines import StagedLines
from eventlake.rules import paths
from eventlake.state.suppression import Suppression
from eventlake.storage import LocalStorage
from tests.support.lakes.archive import Line, as_line, identify, page, track
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.retyping import suppress
from tests.support.lakes.runs import SOURCE_ID, Runs
from tests.support.lakes.staged import Staged

AT = "2026-10-01T07:00"


class CountsReads(LocalStorage):
    """Counts how often each raw file is opened."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.opened = Counter[str]()

    def open_stream(self, path: str) -> Any:
        self.opened[path] += 1
        return super().open_stream(path)


class TwoTasks(InProcess):
    slots = 2


@pytest.mark.parametrize("chunk", [1, 300, staged_lines.CHUNK])
@pytest.mark.parametrize("flow", [InProcess, TwoTasks])
def test_a_sync_reads_each_raw_file_once_whatever_the_outcome_of_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flow: type[InProcess], chunk: int
) -> None:
    monkeypatch.setattr(staged_lines, "CHUNK", chunk)
    storage = CountsReads(str(tmp_path))
    runs = Runs(tmp_path, store=storage, skip_events=["Noise"], fail_above_rejected_percent=100)
    runs.flow = flow
    suppress(storage, "zoe")
    runs.archive.day("2026-10-01").file("0", track("Order", "m0", AT))
    runs.sync()
    secret = track("Order", "m3", AT, note="of zoe") | {"userId": "zoe"}
    wanted: dict[str, list[Line]] = {
        "a": [
            *("", track("Order", "m1", AT, n=1), track("Order", "m0", AT)),
            *(secret, track("Noise", "m4", AT), '{"type": "page"', b"\xff\xfe"),
        ],
        "b": [
            BYTE_ORDER_MARK + as_line(track("Order", "m1", AT, n=2)),
            *(page("m2", AT), page("m2", AT), "  ", identify(None, AT), page("é" * 40, AT)),
        ],
        "c": [track("Order", "m1", AT, n=1), page("m5", AT), '  {"type":  "page"}\r'],
    }
    day = runs.archive.day("2026-10-01")
    for name, lines in wanted.items():
        day.file(name, *lines)
    day.raw("d.gz", gzip.compress(b'["not an event"]\n' + as_line(page("m6", AT)))[:-8])
    day.raw("e.gz", gzip.compress(b"")[:5])
    storage.opened.clear()
    report = runs.sync()

    raw = [p for p in storage.opened if p.startswith("segment-logs/")]
    damaged = ("d.gz", "e.gz")  # the checksum of all their bytes, which are not unpacked again
    assert {p: storage.opened[p] for p in raw} == {p: 1 + p.endswith(damaged) for p in raw}
    assert [p.rpartition("/")[2] for p in sorted(raw)] == [*(f"{n}.gz" for n in "abcde")]
    assert (report.row_count, report.rejected, report.duplicates) == (4, 7, 4)
    log = tmp_path.joinpath(paths.tracking("W1", SOURCE_ID, "R2")).glob("*.parquet")
    rows = pa.concat_tables(map(pq.read_table, log)).to_pylist()
    records = [record for record in rows if record["status"] != "succeeded"]
    assert len(records) == report.rows_in - report.row_count
    for record in records:
        name = Path(record["raw_file"]).stem
        if name not in wanted or record["status_message"] == "Its user is suppressed.":
            continue
        line = as_line(wanted[name][record["raw_line"] - 1]).removeprefix(BYTE_ORDER_MARK)
        assert record["record_payload"] == line.decode(errors="replace")
    [hidden] = [r for r in records if r["status_message"] == "Its user is suppressed."]
    assert (hidden["identifier"], hidden["record_payload"]) == ("m3", None)
    ends = {r["raw_file"][-4:]: r for r in records if r["status_message"].startswith("The file is")}
    assert {name: (r["raw_line"], r["record_payload"]) for name, r in ends.items()} == {
        "d.gz": (2, None),
        "e.gz": (1, None),
    }


def test_lines_of_suppressed_people_are_staged_without_what_they_say(tmp_path: Path) -> None:
    person: dict[str, Any] = track("Order", "m1", AT, note="private") | {"userId": "zoe"}
    mine = track("Order", "m2", AT, note="public")
    storage = LocalStorage(str(tmp_path))
    suppress(storage, "zoe")
    staged = Staged(
        tmp_path, [person, mine], suppression=Suppression.of(storage, Runs(tmp_path).source)
    )
    chunks = staged.of(BlobKind.LINES)
    assert all(b"private" not in unpacked(c.data, staged_lines._PACKING) for c in chunks)
    lines = StagedLines(chunks)
    left = {key: person[key] for key in ("type", "event", "messageId", "receivedAt")}
    assert (lines.line(position(0, 1)) or b"").rstrip() == as_line(left)
    assert lines.line(position(0, 2)) == as_line(mine)
    assert lines.line(position(0, 3)) is None
