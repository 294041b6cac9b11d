"""The lake's files, addressed by paths relative to its root, on any store that pyarrow knows."""

import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from pyarrow import fs as pafs


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file below the root; `stamp` tells whether it changed (modification time or ETag)."""

    path: str
    size: int
    stamp: str
    modified_ns: int = 0

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Storage:
    """A root folder and the few operations needed of it; travels to Spark tasks by its URI."""

    uri: str

    @cached_property
    def fs(self) -> pafs.FileSystem:
        return pafs.LocalFileSystem()

    @cached_property
    def root(self) -> str:
        return str(Path(self.uri).absolute())

    def __getstate__(self) -> dict[str, str]:
        return {"uri": self.uri}

    def full(self, path: str) -> str:
        """The path as other programs on this file system know it."""
        return f"{self.root}/{path}" if path else self.root

    def relative(self, full: str) -> str:
        return full[len(self.root) + 1 :]

    def read(self, path: str) -> bytes | None:
        """The content of a file, or None where there is none."""
        try:
            with self.fs.open_input_stream(self.full(path)) as stream:
                data: bytes = stream.read()
                return data
        except FileNotFoundError:
            return None

    def read_many(self, paths: list[str]) -> list[bytes | None]:
        if len(paths) < 2:
            return [self.read(path) for path in paths]
        with ThreadPoolExecutor(16) as pool:
            return list(pool.map(self.read, paths))

    def open_input(self, path: str) -> pa.NativeFile:
        return self.fs.open_input_file(self.full(path))

    def open_stream(self, path: str) -> pa.NativeFile:
        """The bytes as they lie there: what is gzipped stays gzipped."""
        return self.fs.open_input_stream(self.full(path), compression=None)

    def open_output(self, path: str) -> pa.NativeFile:
        """For files that no reader looks at before they are published; others use `write`."""
        os.makedirs(os.path.dirname(self.full(path)), exist_ok=True)
        return self.fs.open_output_stream(self.full(path))

    def write(self, path: str, data: bytes) -> None:
        """Put a file in place at once: readers see the old content or the new, never a part."""
        self._write_aside(path, data, os.replace)

    def create(self, path: str, data: bytes) -> bool:
        """Put a file in place only if there is none; False if there is. Whole or not at all."""
        try:
            # A link, unlike O_EXCL and a write after it, never leaves a half-written winner.
            self._write_aside(path, data, os.link)
        except FileExistsError:
            return False
        return True

    def _write_aside(self, path: str, data: bytes, put: Callable[[str, str], None]) -> None:
        full = self.full(path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        aside = f"{os.path.dirname(full)}/.{os.path.basename(full)}.{uuid.uuid4().hex}"
        try:
            with open(aside, "wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            put(aside, full)
        finally:
            Path(aside).unlink(missing_ok=True)

    def exists(self, path: str) -> bool:
        return bool(self.fs.get_file_info(self.full(path)).type != pafs.FileType.NotFound)

    def files(self, folder: str, *, recursive: bool = True) -> list[StoredFile]:
        """All files below a folder, by path; hidden ones (ours, half-written) are left out."""
        return sorted(
            (
                StoredFile(self.relative(info.path), info.size, str(info.mtime_ns), info.mtime_ns)
                for info in self._infos(folder, recursive)
                if info.is_file and not info.base_name.startswith(".")
            ),
            key=lambda file: file.path,
        )

    def folders(self, folder: str) -> list[str]:
        """The names of the folders directly below a folder."""
        return sorted(i.base_name for i in self._infos(folder, False) if not i.is_file)

    def _infos(self, folder: str, recursive: bool) -> Iterator[pafs.FileInfo]:
        selector = pafs.FileSelector(self.full(folder), recursive=recursive, allow_not_found=True)
        return iter(self.fs.get_file_info(selector))

    def place(self, source: str, target: str) -> None:
        """Bring a written file to its published path; done already is done."""
        if self.exists(target):
            return
        full = self.full(target)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        try:
            os.replace(self.full(source), full)
        except FileNotFoundError:
            if not self.exists(target):  # else another run has just done it
                raise

    def copy(self, source: str, target: str) -> None:
        full = self.full(target)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        shutil.copyfile(self.full(source), full)

    def delete(self, path: str) -> None:
        Path(self.full(path)).unlink(missing_ok=True)

    def delete_folder(self, folder: str) -> None:
        shutil.rmtree(self.full(folder), ignore_errors=True)
