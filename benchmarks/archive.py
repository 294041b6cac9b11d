"""Generated archives. Each is described by a recipe, made once and kept on disk."""

import gzip
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import date
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from msgspec import Raw
from msgspec.json import Decoder, decode, encode

from benchmarks.verify import Truth, truth_of
from eventlake.sample import WEB_SHOP, SampleSpec, write_archive
from eventlake.sample.archive import gzipped, write_if_different
from eventlake.sample.events import kinds_of

SOURCE = WEB_SHOP
RAW = f"segment-logs/{SOURCE.id}"
_FEWEST_TABLES = len(kinds_of(SOURCE, 1))
# Two of five duplicates in the sample arrive on later days, which are not generated.
_DUPLICATES_ON_THE_SAME_DAY = 0.6
_FORMAT = 1  # increase when the same recipe produces different bytes


@dataclass(frozen=True, slots=True)
class Recipe:
    """Describes an archive of one source without invalid lines; the same recipe gives the same."""

    events: int = 1_000_000  # per day, without duplicates
    tables: int = 60
    hours: int = 24
    files: int = 24  # per day
    duplicates: float = 0.01
    days: int = 1
    first_day: date = date(2026, 10, 1)
    seed: int = 7
    one_table: bool = False  # all events have the same type
    columns: int = 0  # additional columns in each table
    columns_each: int = 0  # how many of these each event has

    def __post_init__(self) -> None:
        if self.tables < _FEWEST_TABLES:
            raise ValueError(f"tables is {self.tables}; the minimum is {_FEWEST_TABLES}")
        if self.columns_each > self.columns:
            raise ValueError(f"an event cannot have {self.columns_each} of {self.columns} columns")

    @property
    def spec(self) -> SampleSpec:
        return SampleSpec(
            seed=self.seed,
            first_day=self.first_day,
            days=self.days,
            events_per_day=self.events,
            files_per_day=self.files,
            faults=False,
            hours=self.hours,
            extra_events=self.tables - _FEWEST_TABLES,
            duplicates=self.duplicates / _DUPLICATES_ON_THE_SAME_DAY,
        )

    @property
    def name(self) -> str:
        """A folder name that is unique to the recipe."""
        digest = sha256(encode([_FORMAT, asdict(self)])).hexdigest()[:8]
        return f"{self.days}x{self.events}-{self.tables}t-{self.hours}h-{self.files}f-{digest}"


@dataclass(frozen=True, slots=True)
class Archive:
    """Raw files below `folder`, with the layout of a lake, and the tables they must result in."""

    folder: Path
    recipe: Recipe
    truth: Truth

    @property
    def files(self) -> list[Path]:
        return raw_files(self.folder)

    @property
    def size(self) -> int:
        return sum(path.stat().st_size for path in self.files)

    def link_into(self, storage: Path) -> None:
        """Hard-link the raw files into a lake's storage; existing files stay."""
        for path in self.files:
            target = storage / path.relative_to(self.folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                os.link(path, target)


def raw_files(folder: Path) -> list[Path]:
    """In the order in which the events were received."""
    return sorted((folder / RAW).rglob("*.gz"))


def make_archive(cache: Path, recipe: Recipe) -> Archive:
    """Generate the archive unless it is in the cache."""
    folder = cache / recipe.name
    truth_file = folder / "truth.json"
    if not truth_file.exists():
        shutil.rmtree(folder, ignore_errors=True)
        generated = write_archive(folder, recipe.spec, sources=[SOURCE])
        reshaped = _reshape(raw_files(folder), recipe)
        truth = truth_of(raw_files(folder))
        expected = generated.expected(SOURCE.id)
        if not reshaped and truth.slots != {
            f"{slot.table}/{slot.day}/{slot.hr}": rows for slot, rows in expected.rows.items()
        }:
            raise RuntimeError("the sample generator reports other rows than its raw JSON contains")
        truth_file.write_bytes(encode(truth))
    return Archive(folder, recipe, decode(truth_file.read_bytes(), type=Truth))


# Changes to generated events, for archives that the sample generator cannot make.
Event: TypeAlias = dict[str, Raw]
Change: TypeAlias = Callable[[Event, int], None]

_DECODER = Decoder(Event)
_ONLY_EVENT = "Product Viewed"
_EXAMPLES = 500


def _reshape(files: list[Path], recipe: Recipe) -> bool:
    if recipe.one_table:
        change = _one_type(files[0])
    elif recipe.columns:
        change = _more_columns(recipe.columns, recipe.columns_each)
    else:
        return False
    for path in files:
        changed = _changed_lines(path, change)
        write_if_different(path, gzipped(changed))
    return True


def _one_type(path: Path) -> Change:
    """Turn every event into a product view, with the properties of a generated one."""
    name = encode(_ONLY_EVENT)
    views = (event for event in _events(path) if bytes(event.get("event", b"")) == name)
    properties = [event["properties"] for event in islice(views, _EXAMPLES)]

    def change(event: Event, number: int) -> None:
        for key in ("name", "category", "traits", "groupId", "previousId"):
            event.pop(key, None)
        event["type"] = Raw(b'"track"')
        event["event"] = Raw(name)
        event["properties"] = properties[number % len(properties)]

    return change


def _more_columns(columns: int, each: int) -> Change:
    """Give each event a few of many additional properties, since wide tables are sparse."""

    def change(event: Event, number: int) -> None:
        first = number * each
        extra = b",".join(
            b'"extra_%03d":%d' % ((first + index) % columns, number + index)
            for index in range(each)
        )
        known = bytes(event.get("properties", b"{}"))[1:]
        event["properties"] = Raw(b"{" + extra + (b"" if known == b"}" else b",") + known)

    return change


def _changed_lines(path: Path, change: Change) -> Iterator[bytes]:
    for number, event in enumerate(_events(path)):
        change(event, number)
        yield encode(event)


def _events(path: Path) -> Iterator[Event]:
    with gzip.open(path) as lines:
        yield from map(_DECODER.decode, lines)
