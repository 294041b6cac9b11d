"""`python -m benchmarks.flame`: where the time of a sync goes, as a flame graph.

Of the Python processes, which do the work; Java, which only starts tasks, is not in it.
"""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.archive import make_archive
from benchmarks.contestants import ROOT, engine_command, lake_folder
from benchmarks.recipe import Recipe

_PY_SPY = ROOT / ".bench-venv" / "bin" / "py-spy"
_OURS = re.compile(r"^(\S+) \(.*?((?:lake|spark_resources|benchmarks)/[\w/]+\.py):\d+\)$")
_MODULE = re.compile(r"\((?:.*site-packages/)?([^:.()]+)[^()]*\)$")
_WIDTH, _ROW, _LEAST = 1200, 18, 0.004  # of the width, below which nothing is drawn


@dataclass(slots=True)
class Frame:
    """A function, or all of a library, and what it calls; samples include those below."""

    name: str
    samples: int = 0
    below: dict[str, "Frame"] = field(default_factory=dict)

    def add(self, stack: list[str], samples: int) -> None:
        self.samples += samples
        if stack:
            name = stack[0]
            self.below.setdefault(name, Frame(name)).add(stack[1:], samples)

    @property
    def depth(self) -> int:
        return 1 + max((frame.depth for frame in self.below.values()), default=0)


def frames(line: str) -> list[str]:
    """Our own functions of a recorded stack, and below them the library that was at work."""
    kept: list[str] = []
    rest = ""
    for frame in line.split(";"):
        if ours := _OURS.match(frame):
            name = f"{ours[1]} ({ours[2]})"
            if not kept or kept[-1] != name:
                kept.append(name)
            rest = ""
        elif kept and not rest:
            module = _MODULE.search(frame)
            rest = module[1] if module and module[1] != "?" else "compiled code"
    return [*kept, rest] if rest else kept


def read(recorded: Path) -> Frame:
    """All that was recorded as one tree."""
    root = Frame("all Python processes")
    for line in recorded.read_text().splitlines():
        stack, _, samples = line.rpartition(" ")
        root.add(frames(stack), int(samples))
    return root


def draw(root: Frame, title: str) -> str:
    """The tree as SVG: time goes to the right, calls go down."""
    height = 40 + _ROW * root.depth
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
            'font-family="sans-serif" font-size="11">',
            f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
            f'<text x="8" y="20" font-size="15">{escape(title)}</text>',
            *_boxes(root, 0.0, 0, root.samples),
            "</svg>\n",
        ]
    )


def _boxes(frame: Frame, left: float, level: int, whole: int) -> Iterator[str]:
    share = frame.samples / whole
    if share < _LEAST:
        return
    x, width, y = left * _WIDTH, share * _WIDTH, 32 + _ROW * level
    ours = " (" in frame.name
    told = f"{frame.name}: {share:.1%}"
    yield (
        f'<g><title>{escape(told)}</title><rect x="{x:.1f}" y="{y}" width="{width:.1f}" '
        f'height="{_ROW - 1}" fill="{"#f2b279" if ours else "#c9d3dd"}" stroke="white"/>'
    )
    room = int(width / 6)
    if room > 3:
        yield f'<text x="{x + 3:.1f}" y="{y + 13}">{escape(told[:room])}</text>'
    yield "</g>"
    for below in sorted(frame.below.values(), key=lambda one: -one.samples):
        yield from _boxes(below, left, level + 1, whole)
        left += below.samples / whole


def main(
    save: Annotated[Path, typer.Option(help="Where the picture goes (.svg).")],
    events: Annotated[int, typer.Option(help="Events of the archive.")] = 1_000_000,
    title: Annotated[str, typer.Option(help="What stands above it.")] = "Where the time goes",
    recorded: Annotated[
        Path | None, typer.Option(help="Draw these stacks of py-spy instead (--format raw).")
    ] = None,
) -> None:
    """Record a sync by the engine with py-spy, and draw it."""
    root = read(recorded) if recorded else _recorded(events)
    save.write_text(draw(root, title), encoding="utf-8")
    print(save)


def _recorded(events: int) -> Frame:
    archive = make_archive(ROOT / ".bench" / "archives", Recipe(events=events))
    with tempfile.TemporaryDirectory(dir=ROOT / ".bench") as name:
        folder = Path(name)
        lake_folder(folder, archive)
        stacks = folder / "stacks.txt"
        record = ["record", "--subprocesses", "--native", "--rate", "50", "--format", "raw"]
        command = engine_command(archive.folder, folder)
        subprocess.run([_PY_SPY, *record, "--output", stacks, "--", *command], check=True)
        return read(stacks)


if __name__ == "__main__":
    typer.run(main)
