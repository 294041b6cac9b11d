"""What is wrong in a settings file, in words a person can act on."""

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from eventlake.release import LATER_SETTINGS
from eventlake.rules.errors import Problem, did_you_mean
from eventlake.settings import Settings, Source
from eventlake.settings_rules import Loc, breaches
from eventlake.settings_yaml import Document

_NOT_FROM_THE_FILE = frozenset({"config_folder"})
_RIGHT_SOURCE = {"id": "x", "slug": "x"}


def settings_problems(document: Document) -> list[Problem]:
    """Every problem of a file, in the order of its lines."""
    content = document.content
    if not isinstance(content, dict):
        seen = "the file is empty" if content is None else f"{_shown(content)} instead of settings"
        return [Problem(document.place(()), seen, "`datalake init` writes a commented example")]
    found = [*_value_problems(document, content), *_rule_problems(document, content)]
    return [problem for _, problem in sorted(found, key=lambda placed: placed[0])]


Placed = tuple[int, Problem]


def _value_problems(document: Document, content: dict[str, Any]) -> Iterator[Placed]:
    """Top and sources are tried one by one, since a wrong part must not hide the next one."""
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


def _rule_problems(document: Document, content: dict[str, Any]) -> Iterator[Placed]:
    for breach in breaches(content):
        yield _at(document, breach.loc, breach.seen, breach.allowed)


def _errors(model: type[BaseModel], data: object) -> list[ErrorDetails]:
    try:
        model.model_validate(data)
    except ValidationError as error:
        # Rules between settings have no place of their own here: `breaches` tells them.
        return [e for e in error.errors() if e["loc"] or e["type"] != "value_error"]
    return []


def _placed(document: Document, model: type[BaseModel], at: Loc, error: ErrorDetails) -> Placed:
    inner, kind = error["loc"], error["type"]
    loc = (*at, *inner)
    if isinstance(loc[-1], int) and loc not in document.lines:
        loc = loc[:-1]  # one value where a list may stand, too
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
    return document.line(loc), Problem(document.place(loc), seen, allowed)


def _instead(model: type[BaseModel], loc: Loc) -> str:
    """What to write in place of a setting that does not exist there."""
    key, owner = str(loc[-1]), _model_at(model, loc[:-1])
    if owner is Source and key in Settings.model_fields:
        return "it stands at the top of the file, not in a source"
    if owner is Settings and key in Source.model_fields:
        return "it stands in a source, not at the top of the file"
    known = [name for name in owner.model_fields if name not in _NOT_FROM_THE_FILE]
    return did_you_mean(key, known).removeprefix("; ") or f"allowed: {', '.join(known)}"


def _allowed(model: type[BaseModel], loc: Loc) -> str:
    if not loc:
        return "allowed: a mapping of settings"
    return _description(_field(model, loc))


def _field(model: type[BaseModel], loc: Loc) -> FieldInfo:
    """The setting that a place is, or is in."""
    owner, field = model, str(loc[0])
    if len(loc) > 1 and (inner := _model_at(model, loc[:1])) is not model:
        owner, field = inner, str(loc[1])
    return owner.model_fields[field]


def _is_secret(model: type[BaseModel], loc: Loc) -> bool:
    extra = _field(model, loc).json_schema_extra if loc else None
    return isinstance(extra, dict) and bool(extra.get("secret"))


def _description(field: FieldInfo) -> str:
    """How a field says what it allows; where null is allowed too, its other form says it."""
    notes = [note for form in get_args(field.annotation) for note in get_args(form)]
    described = [field, *(note for note in notes if isinstance(note, FieldInfo))]
    return next(info.description for info in described if info.description)


def _model_at(model: type[BaseModel], loc: Loc) -> type[BaseModel]:
    """The part of the settings that a place is in."""
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
