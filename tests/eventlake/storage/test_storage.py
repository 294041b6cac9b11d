"""Storage backends behave the same."""

import errno
import json
import os
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventlake.azure import sessions as azure_sessions
from eventlake.rules.errors import StateError
from eventlake.state.ledger import LedgerEntry, LedgerPage
from eventlake.storage import Storage, local, s3
from eventlake.storage.base import Change
from eventlake.storage.documents import FORMAT_VERSION, decode, encode
from eventlake.storage.local import LocalStorage

MANY = 8


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3, "PART_BYTES", 5 << 20)  # the least that S3 takes
    monkeypatch.setattr(azure_sessions, "PART_BYTES", 5 << 20)


def put(storage: Storage, *paths: str) -> None:
    for path in paths:
        storage.write(path, path.encode())


def listed(storage: Storage, folder: str, recursive: bool = True) -> list[str]:
    return [file.path for file in storage.files(folder, recursive=recursive)]


def test_what_was_written_is_read_and_replaced(storage: Storage) -> None:
    assert storage.read("a/b.json") is None
    storage.write("a/b.json", b"one")
    assert storage.read("a/b.json") == b"one"
    storage.write("a/b.json", b"")
    assert storage.read("a/b.json") == b""
    put(storage, "a/1", "a/3")
    assert storage.read_many(["a/3", "a/2", "a/1"]) == [b"a/3", None, b"a/1"]
    assert storage.read_many(["a/1"]) == [b"a/1"]
    assert storage.read_many([]) == []


def test_a_file_is_created_once(storage: Storage) -> None:
    assert storage.create("m/1", b"first") is True
    assert storage.create("m/1", b"second") is False
    assert storage.create("m/1", b"first") is False
    assert storage.read("m/1") == b"first"


def test_one_of_many_concurrent_creators_wins(storage: Storage) -> None:
    for number in range(5):
        start = threading.Barrier(MANY)

        def create(me: int, path: str = f"m/{number}", start: threading.Barrier = start) -> bool:
            start.wait()
            return storage.create(path, b"%d" % me)

        with ThreadPoolExecutor(MANY) as pool:
            won = list(pool.map(create, range(MANY)))
        assert won.count(True) == 1
        assert storage.read(f"m/{number}") == b"%d" % won.index(True)


def test_changes_made_at_the_same_time_are_all_there_in_the_end(storage: Storage) -> None:
    def add(me: int) -> None:
        for _ in range(5):
            storage.update("n", lambda old: (old or b"") + b"%d," % me)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(4)))
    counted = (storage.read("n") or b"").decode().strip(",").split(",")
    assert sorted(counted) == sorted("0123" * 5)


def test_of_several_files_those_are_created_that_are_missing(storage: Storage) -> None:
    put(storage, "m/2/x")
    files = [(f"m/{n}/x", b"new %d" % n) for n in range(4)]
    assert storage.create_all(files) == [True, True, False, True]
    found = storage.read_many([path for path, _ in files])
    assert found == [b"new 0", b"new 1", b"m/2/x", b"new 3"]
    assert storage.create_all([]) == []


def test_several_files_are_updated_each_by_its_own_change(storage: Storage) -> None:
    put(storage, "n/1", "n/2")
    storage.update_all(
        [
            ("n/1", lambda old: (old or b"") + b" changed"),
            ("n/2", lambda old: None),
            ("n/3/x", lambda old: b"new" if old is None else None),
        ]
    )
    assert storage.read_many(["n/1", "n/2", "n/3/x"]) == [b"n/1 changed", b"n/2", b"new"]
    storage.update_all([])


def test_what_another_changes_while_several_are_updated_is_not_lost(storage: Storage) -> None:
    put(storage, "n/1")

    def interrupted(path: str) -> Change:
        others = [b" by another"]

        def change(old: bytes | None) -> bytes:
            if others:
                storage.write(path, (old or b"new") + others.pop())
            return (old or b"") + b" by us"

        return change

    storage.update_all([(path, interrupted(path)) for path in ("n/1", "n/2")])
    assert storage.read("n/1") == b"n/1 by another by us"
    assert storage.read("n/2") == b"new by another by us"


def test_no_temporary_file_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden() -> set[str]:
        return {path.name for path in tmp_path.rglob(".*")} - {".lock"}

    def full(*_: object) -> None:
        raise OSError("the disk is full")

    storage = LocalStorage(str(tmp_path))
    files = [("a/x", b"1"), ("b/x", b"2")]
    assert storage.create_all(files) == [True, True]
    assert storage.create_all(files) == [False, False]
    storage.update_all([(path, lambda old: b"3") for path, _ in files])
    assert hidden() == set()
    monkeypatch.setattr(local, "sync_path", full)
    with pytest.raises(OSError, match="full"):
        storage.create_all([("c/x", b"1"), ("d/x", b"2")])
    with pytest.raises(OSError, match="full"):
        storage.update_all([(path, lambda old: b"4") for path, _ in files])
    assert hidden() == set()
    assert [storage.read(path) for path in ("a/x", "b/x", "c/x")] == [b"3", b"3", None]


def test_an_update_that_changes_nothing_writes_nothing(storage: Storage) -> None:
    storage.update("n", lambda old: None)
    assert storage.read("n") is None
    storage.write("n", b"1")
    before = storage.files("")
    storage.update("n", lambda old: None if old == b"1" else b"2")
    assert storage.files("") == before


def test_folders_and_files_are_listed(storage: Storage) -> None:
    put(storage, "b/2/x", "b/2/y", "b/10/x", "b/z", "b-c/x", "c")
    assert listed(storage, "b") == ["b/10/x", "b/2/x", "b/2/y", "b/z"]
    assert listed(storage, "b", recursive=False) == ["b/z"]
    assert listed(storage, "b/", recursive=False) == ["b/z"]
    assert storage.folders("b") == storage.folders("b/") == ["10", "2"]
    assert listed(storage, "") == ["b-c/x", "b/10/x", "b/2/x", "b/2/y", "b/z", "c"]
    assert storage.folders("") == ["b", "b-c"]
    assert listed(storage, "nowhere") == storage.folders("nowhere") == []


def test_hidden_files_are_left_out(storage: Storage) -> None:
    put(storage, "a/.half", "a/whole", "a/_SUCCESS")
    assert listed(storage, "a") == ["a/_SUCCESS", "a/whole"]


def test_names_may_have_any_characters(storage: Storage) -> None:
    odd = ["a/day=2026-10-01/hr=07/x y+z&%41.parquet", "a/ü/ß.json", "a/日本.gz"]
    put(storage, *odd)
    assert listed(storage, "a") == sorted(odd)
    for path in odd:
        assert storage.read(path) == path.encode()
        with storage.open_input(path) as file:
            assert file.read() == path.encode()
    storage.copy(odd[1], "b/ü")
    storage.move_into_place(odd[0], "b/%41")
    assert storage.read("b/ü") == odd[1].encode()
    assert storage.read("b/%41") == odd[0].encode()


def test_size_and_stamp_show_that_a_file_changed(storage: Storage) -> None:
    storage.write("a", b"one")
    [before] = storage.files("")
    assert (before.size, before.name) == (3, "a")
    assert before.modified_ns > 1_700_000_000 * 10**9
    assert storage.files("") == [before]
    storage.write("a", b"two")
    [after] = storage.files("")
    assert after.stamp != before.stamp


def test_files_and_folders_exist_or_not(storage: Storage) -> None:
    put(storage, "a/b/c")
    found = [path for path in ("a/b/c", "a/b", "a", "a/c", "b") if storage.exists(path)]
    assert found == ["a/b/c", "a/b", "a"]


def test_parts_of_a_file_are_read_in_any_order(storage: Storage) -> None:
    table = pa.table({"n": range(1000)})
    with storage.open_output("t/x.parquet") as out:
        pq.write_table(table, out)
    with storage.open_input("t/x.parquet") as file:
        assert pq.ParquetFile(file).read() == table
    with pytest.raises(FileNotFoundError):
        storage.open_input("t/y.parquet")


def test_a_stream_gives_the_bytes_as_they_are(storage: Storage) -> None:
    packed = b"\x1f\x8b" + bytes(range(256)) * 40_000
    storage.write("a/x.gz", packed)
    with storage.open_stream("a/x.gz") as stream:
        assert stream.read(2) == packed[:2]
        assert stream.read() == packed[2:]
    with pytest.raises(FileNotFoundError):
        storage.open_stream("a/y.gz").read(1)


@pytest.mark.parametrize("size", [0, 10, 12 << 20])
def test_files_written_in_parts_or_at_once_are_complete(storage: Storage, size: int) -> None:
    data = np.resize(np.arange(256, dtype=np.uint8), size)
    with storage.open_output("o/x") as out:
        for start in range(0, size, 3 << 20):
            out.write(data[start : start + (3 << 20)].tobytes())
    storage.write_unique("o/y", data.data)
    assert storage.read("o/x") == storage.read("o/y") == data.tobytes()


@pytest.mark.parametrize("size", [0, 10, 12 << 20])
def test_a_write_that_fails_leaves_nothing(storage: Storage, size: int) -> None:
    with pytest.raises(KeyboardInterrupt), storage.open_output("o/x") as out:
        out.write(bytes(size))
        raise KeyboardInterrupt
    assert storage.files("") == []
    with pytest.raises(AttributeError), storage.open_output("o/x") as out:
        pq.write_table("no table", out)
    assert storage.files("") == []


def test_a_task_that_runs_twice_at_the_same_time_writes_a_whole_file(storage: Storage) -> None:
    with storage.open_output("o/x") as slow:
        slow.write(b"the sa")
        with storage.open_output("o/x") as fast:
            fast.write(b"the same")
        assert storage.read("o/x") == b"the same"
        slow.write(b"me")
    assert storage.read("o/x") == b"the same"
    assert [file.path for file in storage.files("")] == ["o/x"]


def test_leftovers_of_a_killed_task_are_removed_with_its_file(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    put(storage, "o/x", "o/y", "o/.x.0123", "o/.z.0123", "o/.lock")
    storage.make_durable(["o/x", "o/y"])
    assert {path.name for path in (tmp_path / "o").iterdir()} == {"x", "y", ".z.0123", ".lock"}


def test_an_early_sync_raises_its_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only when the thread that started it makes files durable."""
    storage = LocalStorage(str(tmp_path))
    put(storage, "o/x")
    failing = True

    def sync_disk(at: str) -> bool:
        if failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return True

    monkeypatch.setattr(local, "sync_disk", sync_disk)
    storage.start_sync(local.MANY + 1)
    local._ahead.submit(int).result()  # the early sync has ended
    failing = False
    put(storage, "lease")
    with ThreadPoolExecutor(1) as another:
        another.submit(put, storage, "lease").result()
        another.submit(storage.make_durable, ["o/x"]).result()
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        storage.make_durable(["o/x"])
    storage.make_durable(["o/x"])


def test_a_file_is_placed_once(storage: Storage) -> None:
    put(storage, "stage/x", "stage/y")
    storage.move_into_place("stage/x", "data/x")
    storage.move_into_place("stage/x", "data/x")  # again: the run was interrupted
    storage.move_into_place("stage/y", "data/x")  # what is published stays
    assert storage.read("data/x") == b"stage/x"
    storage.delete_folder("stage")
    storage.move_into_place("stage/x", "data/x")
    with pytest.raises(FileNotFoundError):
        storage.move_into_place("stage/x", "data/z")


def test_many_files_are_placed_and_copied(storage: Storage) -> None:
    put(storage, *(f"stage/{n}" for n in range(40)))
    storage.copy_all([(f"stage/{n}", f"copy/{n}") for n in range(40)])
    storage.move_all_into_place([(f"stage/{n}", f"data/{n}") for n in range(40)])
    for folder in ("copy", "data"):
        found = {storage.read(f"{folder}/{n}") for n in range(40)}
        assert found == {f"stage/{n}".encode() for n in range(40)}
    with pytest.raises(FileNotFoundError):
        storage.copy_all([("copy/0", "again/0"), ("copy/40", "again/40")])


@pytest.mark.parametrize("gone", ["a/b", "a/b/", "nowhere"])
def test_only_deleted_files_are_removed(storage: Storage, gone: str) -> None:
    put(storage, "a/b/c", "a/b/.d", "a/bc", "a/b-c/d")
    storage.delete_folder(gone.rstrip("/"))
    left = ["a/b-c/d", "a/bc"] if gone != "nowhere" else ["a/b-c/d", "a/b/c", "a/bc"]
    assert listed(storage, "") == left
    storage.delete("a/bc")
    storage.delete("a/bc")
    assert not storage.exists("a/bc")


def test_a_storage_travels(storage: Storage) -> None:
    storage.write("a", b"x")
    assert storage.fs is not None
    assert pickle.loads(pickle.dumps(storage)) == storage
    there: Callable[[str], bytes | None] = pickle.loads(pickle.dumps(storage)).read
    assert there("a") == b"x"


def test_other_programs_can_use_full_paths(storage: Storage) -> None:
    storage.write("a/b", b"x")
    assert storage.full("a/b") == f"{storage.uri}/a/b"
    assert storage.full("") == storage.uri
    with storage.fs.open_input_file(storage.fs_path("a/b")) as file:
        assert file.read() == b"x"


PAGE = LedgerPage({"a": LedgerEntry("a", 1, "t", 2, ("2026-10-01T07",))})


def test_a_document_is_read_again_and_a_newer_format_is_refused() -> None:
    data = encode(PAGE)
    assert json.loads(data)["format_version"] == FORMAT_VERSION
    assert decode(data, LedgerPage, "x.json") == PAGE
    newer = json.dumps({"format_version": FORMAT_VERSION + 1, "files": "of another kind"}).encode()
    with pytest.raises(StateError, match=r"x\.json has format version \d+.*upgrade this one"):
        decode(newer, LedgerPage, "x.json")


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"{}", b'{"format_version": 1, "files": 5}', encode(PAGE)[:-3], b"\xff"],
)
def test_a_damaged_file_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(StateError, match=r"x\.json cannot be read as LedgerPage.*backup"):
        decode(data, LedgerPage, "x.json")


def test_a_new_folder_can_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow raises if a folder is missing when it is listed and there right afterwards."""
    storage = LocalStorage(str(tmp_path))
    storage.write("runs/a", b"x")
    real, calls = storage.fs, []

    class Races:
        def get_file_info(self, selector: Any) -> Any:
            calls.append(selector)
            if len(calls) == 1:
                raise FileNotFoundError("Cannot list directory")
            return real.get_file_info(selector)

    monkeypatch.setattr(LocalStorage, "fs", property(lambda _: Races()))
    assert [file.path for file in storage.files("runs")] == ["runs/a"]
    assert len(calls) == 2
