"""Draw the rooms of the three packages and their imports into docs/architecture.md.

`make rooms` writes the drawing, `scripts/draw_rooms.py --check` fails if it is out of date.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/architecture.md"
PACKAGES = ("datalake_assets", "spark_resources", "eventlake")
BEGIN, END = "<!-- rooms: begin (make rooms) -->\n", "<!-- rooms: end -->\n"

Graph = dict[str, set[str]]


def rooms() -> Graph:
    """Each room (a child of one of the packages) with the rooms that it imports."""
    modules = grimp.build_graph(*PACKAGES, cache_dir=None)
    graph: Graph = {room: set() for package in PACKAGES for room in modules.find_children(package)}
    for module in modules.modules:
        if (room := _room(module)) in graph:
            imported = map(_room, modules.find_modules_directly_imported_by(module))
            graph[room].update(other for other in imported if other in graph and other != room)
    return graph


def _room(module: str) -> str:
    return ".".join(module.split(".")[:2])


def direct(graph: Graph) -> Graph:
    """The graph without the arrows that follow from others (its transitive reduction)."""
    return {
        room: imported - set().union(*(_below(graph, other) for other in imported))
        for room, imported in graph.items()
    }


def _below(graph: Graph, room: str) -> set[str]:
    found: set[str] = set()
    waiting = [*graph[room]]
    while waiting:
        if (other := waiting.pop()) not in found:
            found.add(other)
            waiting += graph[other]
    return found


def drawing(graph: Graph) -> Iterator[str]:
    """A Mermaid flowchart, a box for each package."""
    yield "```mermaid\nflowchart TB\n"
    for package in PACKAGES:
        yield f"  subgraph {package}\n"
        for room in sorted(room for room in graph if room.startswith(f"{package}.")):
            yield f"    {_node(room)}[{room.partition('.')[2]}]\n"
        yield "  end\n"
    for room, imported in sorted(direct(graph).items()):
        if imported:
            yield f"  {_node(room)} --> {' & '.join(map(_node, sorted(imported)))}\n"
    yield "```\n"


def _node(room: str) -> str:
    return room.replace(".", "_")


def table(graph: Graph) -> Iterator[str]:
    """Every import between rooms."""
    yield "| room | imports |\n|---|---|\n"
    for package in PACKAGES:
        for room in sorted(room for room in graph if room.startswith(f"{package}.")):
            yield f"| `{room}` | {_listed(graph[room], package)} |\n"


def _listed(imported: set[str], package: str) -> str:
    here = [room.partition(".")[2] for room in imported if room.startswith(f"{package}.")]
    elsewhere = [room for room in imported if not room.startswith(f"{package}.")]
    return ", ".join(sorted(here) + sorted(elsewhere)) or "none"


def with_drawing(text: str, graph: Graph) -> str:
    """The page with the current drawing between its markers."""
    head, rest = text.split(BEGIN)
    _, tail = rest.split(END)
    hidden = "\n<details><summary>All imports, also those that follow from others</summary>\n\n"
    parts = [BEGIN, *drawing(graph), hidden, *table(graph), "\n</details>\n", END]
    return head + "".join(parts) + tail


def main() -> None:
    sys.path.insert(0, str(ROOT))
    old = PAGE.read_text()
    new = with_drawing(old, rooms())
    if "--check" not in sys.argv:
        PAGE.write_text(new)
    elif new != old:
        sys.exit("The drawing in docs/architecture.md is out of date. Run `make rooms`.")


if __name__ == "__main__":
    main()
