"""A YAML file as text values with the line of each, so that a wrong one can be pointed at.

Every scalar stays text (null apart), and the settings' own types read it: `slug: no` is the text
`no`, `glue_catalog_id: 012345678901` keeps its zero, and a date is what it says.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from eventlake.rules.errors import Problem, SettingsError
from eventlake.settings_rules import Loc, path_of

_STANDARD_TAGS = "tag:yaml.org,2002:"
_NULL = f"{_STANDARD_TAGS}null"
_MERGE = f"{_STANDARD_TAGS}merge"


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a YAML file and the line on which each entry stands."""

    name: str
    content: Any
    lines: Mapping[Loc, int]

    def line(self, loc: Loc) -> int:
        """The line of a setting, or of what it is missing from."""
        while loc not in self.lines:
            loc = loc[:-1]
        return self.lines[loc]

    def place(self, loc: Loc) -> str:
        """Where a setting stands, or where it would have to: `lake.yaml:12 sources[1].start`."""
        return f"{self.name}:{self.line(loc)} {path_of(loc)}".rstrip()


def read_document(name: str, text: str) -> Document:
    """Parse a file; raises with line and column where it is not YAML."""
    try:
        reading = _Reading(yaml.SafeLoader(text), name)
        root = reading.loader.get_single_node()
        content = reading.value(root, ()) if root else None
    except yaml.YAMLError as error:
        raise SettingsError(f"{name} is not YAML.", [_syntax_problem(name, error)]) from error
    if reading.problems:
        raise SettingsError(f"{name} cannot be used.", reading.problems)
    return Document(name, content, {(): 1, **reading.lines})


class _Reading:
    """One walk over the nodes of a file."""

    def __init__(self, loader: yaml.SafeLoader, name: str) -> None:
        self.loader, self.name = loader, name
        self.lines: dict[Loc, int] = {}
        self.problems: list[Problem] = []
        self._above: list[yaml.Node] = []

    def value(self, node: yaml.Node, loc: Loc) -> Any:
        self.lines.setdefault(loc, node.start_mark.line + 1)
        if any(node is above for above in self._above):
            self._refuse(node, loc, "an alias that contains itself", "write the values out")
            return None
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, loc)
        self._above.append(node)
        try:
            if isinstance(node, yaml.MappingNode):
                return dict(self._entries(node, loc))
            return [self.value(item, (*loc, i)) for i, item in enumerate(node.value)]
        finally:
            self._above.pop()

    def _scalar(self, node: yaml.ScalarNode, loc: Loc) -> str | None:
        if not node.tag.startswith(_STANDARD_TAGS):
            self._refuse(node, loc, f"the tag {node.tag!r}", "write the value without a tag")
        return None if node.tag == _NULL else str(node.value)

    def _entries(self, node: yaml.MappingNode, loc: Loc) -> Iterator[tuple[str, Any]]:
        first: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if key.tag != _MERGE and first.setdefault(str(key.value), line) != line:
                self._refuse(
                    key,
                    (*loc, str(key.value)),
                    f"written twice, first on line {first[str(key.value)]}",
                    "keep one of them",
                )
        self.loader.flatten_mapping(node)
        for key, child in node.value:
            inner = (*loc, str(key.value))
            self.lines[inner] = key.start_mark.line + 1
            yield str(key.value), self.value(child, inner)

    def _refuse(self, node: yaml.Node, loc: Loc, seen: str, allowed: str) -> None:
        place = f"{self.name}:{node.start_mark.line + 1} {path_of(loc)}".rstrip()
        self.problems.append(Problem(place, seen, allowed))


def _syntax_problem(name: str, error: yaml.YAMLError) -> Problem:
    mark = getattr(error, "problem_mark", None)
    seen = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
    return Problem(place, str(seen), "correct the line, or start again from `datalake init`")
