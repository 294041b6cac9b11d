"""Finding and reading `lake.yaml`; reports all problems at once, with line numbers.

Every scalar except null stays a string until its setting's type parses it: `slug: no` is the
string `no`, `glue_catalog_id: 012345678901` keeps its zero, and dates are not converted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from eventlake.rules.errors import Problem, SettingsError, UsageError, did_you_mean
from eventlake.settings.fields import LATER_SETTINGS
from eventlake.settings.models import Settings, Source
from eventlake.settings.validation import Loc, breaches, path_of

_STANDARD_TAGS = "tag:yaml.org,2002:"
_NULL = f"{_STANDARD_TAGS}null"
_MERGE = f"{_STANDARD_TAGS}merge"
MOST_VALUES = 100_000


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a YAML file and the line of each entry."""

    name: str
    content: Any
    lines: Mapping[Loc, int]

    def line(self, loc: Loc) -> int:
        """The line of a setting, or of the group that it is missing from."""
        while loc not in self.lines:
            loc = loc[:-1]
        return self.lines[loc]

    def location(self, loc: Loc) -> str:
        """The location of a setting, also of a missing one: `lake.yaml:12 sources[1].start`."""
        return f"{self.name}:{self.line(loc)} {path_of(loc)}".rstrip()


def read_document(name: str, text: str) -> Document:
    """Parse a file; raise `SettingsError` with line and column if it is not YAML."""
    try:
        reading = _Reading(yaml.SafeLoader(text), name)
        root = reading.loader.get_single_node()
        if root and _size(root, {}) > MOST_VALUES:
            seen = f"aliases that make more than {MOST_VALUES:,} values of it"
            problem = Problem(f"{name}:1", seen, "write the values out")
            raise SettingsError(f"{name} cannot be used.", [problem])
        content = reading.value(root, ()) if root else None
    except RecursionError:
        problem = Problem(f"{name}:1", "values nested too deeply", "write fewer levels")
        raise SettingsError(f"{name} cannot be used.", [problem]) from None
    except yaml.YAMLError as error:
        raise SettingsError(f"{name} is not YAML.", [_syntax_problem(name, error)]) from error
    if reading.problems:
        raise SettingsError(f"{name} cannot be used.", reading.problems)
    return Document(name, content, {(): 1, **reading.lines})


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """The values of a node with its aliases written out; each node is counted once."""
    if id(node) not in known:
        known[id(node)] = 0  # while it is counted: it may contain itself
        below = node.value if isinstance(node, yaml.CollectionNode) else ()
        parts = (part for item in below for part in (item if type(item) is tuple else (item,)))
        known[id(node)] = 1 + sum(_size(part, known) for part in parts)
    return known[id(node)]


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


_NOT_FROM_THE_FILE = frozenset({"config_folder"})
_RIGHT_SOURCE = {"id": "x", "slug": "x"}


def settings_problems(document: Document, folder: Path) -> list[Problem]:
    """Every problem of a file, in the order of its lines."""
    content = document.content
    if not isinstance(content, dict):
        seen = "the file is empty" if content is None else f"{_shown(content)} instead of settings"
        return [Problem(document.location(()), seen, "`datalake init` writes a commented example")]
    found = [*_value_problems(document, content), *_rule_problems(document, content, folder)]
    return [problem for _, problem in sorted(found, key=lambda placed: placed[0])]


Placed = tuple[int, Problem]


def _value_problems(document: Document, content: dict[str, Any]) -> Iterator[Placed]:
    """Validate top level and sources separately: an error in one must not hide others."""
    sources = content.get("sources")
    listed = sources if isinstance(sources, list) else []
    top = {**content, "sources": [_RIGHT_SOURCE]} if listed else content
    for error in _errors(Settings, top):
        if not (listed and error["loc"][:1] == ("sources",)):
            yield _placed(document, Settings, (), error)
    for key in sorted(content.keys() & _NOT_FROM_THE_FILE):
        yield _at(document, (key,), "unknown setting", "leave it out")
    for index, source in enumerate(listed):
        for error in _errors(Source, source):
            yield _placed(document, Source, ("sources", index), error)


def _rule_problems(document: Document, content: dict[str, Any], folder: Path) -> Iterator[Placed]:
    for breach in breaches({**content, "config_folder": folder}):
        yield _at(document, breach.loc, breach.seen, breach.allowed)


def _errors(model: type[BaseModel], data: object) -> list[ErrorDetails]:
    try:
        model.model_validate(data)
    except ValidationError as error:
        # `breaches` reports rules between settings, with locations.
        return [e for e in error.errors() if e["loc"] or e["type"] != "value_error"]
    return []


def _placed(document: Document, model: type[BaseModel], at: Loc, error: ErrorDetails) -> Placed:
    inner, kind = error["loc"], error["type"]
    loc = (*at, *inner)
    if isinstance(loc[-1], int) and loc not in document.lines:
        loc = loc[:-1]  # a single value where a list is also allowed
    if kind == "extra_forbidden" and inner[-1] in LATER_SETTINGS:
        return _at(document, loc, "not in this release", "leave it out")
    if kind == "extra_forbidden":
        return _at(document, loc, "unknown setting", _instead(model, inner))
    if kind == "missing":
        return _at(document, loc, "missing", _allowed(model, inner))
    seen = "seen a value that is not repeated here"
    if not _is_secret(model, inner):
        seen = f"seen {_shown(error['input'])}"
    if loc not in document.lines:
        seen += " (its default)"
    allowed = str(error["ctx"]["error"]) if kind == "value_error" else _allowed(model, inner)
    return _at(document, loc, seen, allowed)


def _at(document: Document, loc: Loc, seen: str, allowed: str) -> Placed:
    return document.line(loc), Problem(document.location(loc), seen, allowed)


def _instead(model: type[BaseModel], loc: Loc) -> str:
    """What to write instead of an unknown setting."""
    key, owner = str(loc[-1]), _model_at(model, loc[:-1])
    if owner is Source and key in Settings.model_fields:
        return "it belongs at the top of the file, not in a source"
    if owner is Settings and key in Source.model_fields:
        return "it belongs in a source, not at the top of the file"
    known = [name for name in owner.model_fields if name not in _NOT_FROM_THE_FILE]
    return did_you_mean(key, known).removeprefix("; ") or f"allowed: {', '.join(known)}"


def _allowed(model: type[BaseModel], loc: Loc) -> str:
    if not loc:
        return "allowed: a mapping of settings"
    return _description(_field(model, loc))


def _field(model: type[BaseModel], loc: Loc) -> FieldInfo:
    """The setting at a location."""
    owner, field = model, str(loc[0])
    if len(loc) > 1 and (inner := _model_at(model, loc[:1])) is not model:
        owner, field = inner, str(loc[1])
    return owner.model_fields[field]


def _is_secret(model: type[BaseModel], loc: Loc) -> bool:
    extra = _field(model, loc).json_schema_extra if loc else None
    return isinstance(extra, dict) and bool(extra.get("secret"))


def _description(field: FieldInfo) -> str:
    """The description of a field, or of its non-null type."""
    notes = [note for form in get_args(field.annotation) for note in get_args(form)]
    described = [field, *(note for note in notes if isinstance(note, FieldInfo))]
    return next(info.description for info in described if info.description)


def _model_at(model: type[BaseModel], loc: Loc) -> type[BaseModel]:
    """The settings group at a location."""
    if loc and isinstance(loc[0], str):
        annotation = model.model_fields[loc[0]].annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return annotation
    return model


def _shown(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else repr(value)


DEFAULT_FILE = "lake.yaml"
FILE_VARIABLE = "DATALAKE_CONFIG"


def template() -> str:
    """The commented `lake.yaml` that `datalake init` writes.

    A comment starts with `# `. A disabled setting starts with `#`: remove it to enable the setting.
    """
    return resources.files("eventlake.settings").joinpath("template.yaml").read_text("utf-8")


def load_settings(path: Path | None, env: Mapping[str, str], cwd: Path) -> Settings:
    """The settings from `--config`, else `$DATALAKE_CONFIG`, else `./lake.yaml`."""
    file = find_settings(path, env, cwd)
    document = read_document(file.name, _read(file))
    if problems := settings_problems(document, file.parent):
        count = "1 setting is" if len(problems) == 1 else f"{len(problems)} settings are"
        raise SettingsError(f"{file} cannot be used: {count} wrong.", problems)
    return Settings.model_validate({**document.content, "config_folder": file.parent})


def find_settings(path: Path | None, env: Mapping[str, str], cwd: Path) -> Path:
    """The absolute path of the settings file, which may not exist."""
    named = path or Path(env.get(FILE_VARIABLE) or DEFAULT_FILE)
    return (cwd / named.expanduser()).absolute()


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig")
    except FileNotFoundError:
        raise UsageError(
            f"There are no settings at {file}. Write a commented file with `datalake init`, "
            f"or name yours with --config or ${FILE_VARIABLE}."
        ) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        problem = Problem(f"{file.name}:{line}", "bytes that are not UTF-8", "save it as UTF-8")
        raise SettingsError(f"{file} cannot be read.", [problem]) from error
    except OSError as error:
        raise UsageError(
            f"The settings at {file} cannot be read: {error.strerror}. Name a readable file with "
            f"--config or ${FILE_VARIABLE}."
        ) from error
