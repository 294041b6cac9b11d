"""Glue's own rules where moto has none: versions, pages, segments, and what it refuses to take.

moto 5.2 keeps tables and partitions, but `UpdateTable` ignores `VersionId` and `SkipArchive`,
listings come whole whatever `MaxResults` and `Segment` say, `ExcludeColumnSchema` and
`AttributesToGet` do nothing, and nothing is too long or too many. Here they hold, on the server's
side, so that tests of the catalog meet what they would meet at AWS.
"""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from botocore.model import ListShape, MapShape, Shape, StringShape, StructureShape
from botocore.session import Session
from moto.core.exceptions import JsonRESTError
from moto.core.responses import ActionResult
from moto.glue.responses import GlueResponse

from tests.support.servers.aws import AwsServer

Parameters = dict[str, Any]
_LISTS = {
    "get_databases": ("DatabaseList", 100),
    "get_tables": ("TableList", 100),
    "get_partitions": ("Partitions", 1000),
}
_OPERATIONS = (
    *_LISTS,
    *(f"{verb}_database" for verb in ("get", "create")),
    *(f"{verb}_table" for verb in ("get", "create", "update")),
    *(f"batch_{verb}_partition" for verb in ("get", "create", "update", "delete")),
)
_LINE = re.compile("[\t\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")
_LINES = re.compile("[\r\n\t\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")


@dataclass
class StrictGlue:
    """What was asked of the server, and what is to happen when something is asked next."""

    aws: AwsServer
    page: int = 1000  # no listing has more on one page
    fit: int = 1000  # partitions in one answer of BatchGetPartition: few, if they are wide
    asked: list[tuple[str, Parameters]] = field(default_factory=list)
    _next: dict[str, list[Callable[[], ActionResult | None]]] = field(default_factory=dict)
    _lock: Any = field(default_factory=threading.RLock)

    @property
    def client(self) -> Any:
        return self.aws.client("glue")

    def before(self, operation: str, act: Callable[[], ActionResult | None]) -> None:
        """Let something happen once, after a call has left and before it arrives.

        What it returns, if anything, is the answer; what it raises, the refusal.
        """
        self._next.setdefault(operation, []).append(act)

    def count(self, operation: str) -> int:
        return sum(name == operation for name, _ in self.asked)

    def batches(self, operation: str, argument: str) -> list[int]:
        """How many entries each call of a batch had."""
        return [len(told[argument]) for name, told in self.asked if name == operation]

    def answer(
        self, operation: str, original: Callable[[Any], ActionResult], response: Any
    ) -> ActionResult:
        told = response.parameters
        if waiting := self._next.get(operation):
            answer = waiting.pop(0)()
            if answer is not None:
                return answer
        with self._lock:
            self.asked.append((operation, told))
            _check(operation, told)
            if operation == "update_table":
                return _update(response, original, told)
            if operation == "batch_get_partition":
                asked = told["PartitionsToGet"]
                told["PartitionsToGet"], left = asked[: self.fit], asked[self.fit :]
                answered: Any = original(response).result
                return ActionResult({**answered, "UnprocessedKeys": left})
            if operation in _LISTS:
                return self._listed(operation, original(response).result, told)
            return original(response)

    def _listed(self, operation: str, answer: Any, told: Parameters) -> ActionResult:
        key, most = _LISTS[operation]
        found = answer[key]
        if segment := told.get("Segment"):
            number, total = segment["SegmentNumber"], segment["TotalSegments"]
            found = [one for place, one in enumerate(found) if place % total == number]
        start = int(told.get("NextToken", "0"))
        end = start + min(self.page, most, told.get("MaxResults", most))
        page = [_seen(one, told) for one in found[start:end]]
        more = {"NextToken": str(end)} if end < len(found) else {}
        return ActionResult({key: page, **more})


def momentary(code: str) -> Callable[[], ActionResult | None]:
    """A refusal that is over the next time."""

    def refuse() -> None:
        raise refusal(code)

    return refuse


def refusal(code: str, said: str = "refused by the test") -> JsonRESTError:
    return JsonRESTError(code, said)


def strict_glue(aws: AwsServer, monkeypatch: pytest.MonkeyPatch) -> StrictGlue:
    """The server of the tests with Glue's own rules, until the test is over."""
    strict = StrictGlue(aws)
    for name in _OPERATIONS:
        original = getattr(GlueResponse, name)
        monkeypatch.setattr(GlueResponse, name, _method(partial(strict.answer, name, original)))
    return strict


def _method(answer: Callable[[Any], ActionResult]) -> Callable[[Any], ActionResult]:
    def handle(self: Any) -> ActionResult:
        return answer(self)

    return handle


def _update(
    response: Any, original: Callable[[Any], ActionResult], told: Parameters
) -> ActionResult:
    table = response.glue_backend.get_table(told["DatabaseName"], told["TableInput"]["Name"])
    before = table.as_dict()["VersionId"]
    if told.get("VersionId", before) != before:
        raise refusal(
            "ConcurrentModificationException",
            f"Table is at version {before}, not at {told['VersionId']}.",
        )
    answer = original(response)
    if told.get("SkipArchive"):
        table.delete_version(before)
    return answer


def _seen(one: dict[str, Any], told: Parameters) -> dict[str, Any]:
    """What a listing shows of a database, table or partition."""
    if told.get("AttributesToGet") == ["NAME"]:
        return {"Name": one["Name"]} | (
            {"DatabaseName": one["DatabaseName"]} if "DatabaseName" in one else {}
        )
    if told.get("ExcludeColumnSchema"):
        stored = {k: v for k, v in one["StorageDescriptor"].items() if k != "Columns"}
        return {**one, "StorageDescriptor": stored}
    return one


def _check(operation: str, told: Parameters) -> None:
    """Refuse what is too long, too many, or more than a line."""
    name = "".join(word.capitalize() for word in operation.split("_"))
    _check_shape(_MODEL.operation_model(name).input_shape, told, name)


def _check_shape(shape: Shape, value: Any, place: str) -> None:
    most = shape.metadata.get("max")
    match shape:
        case StructureShape():
            for key, part in value.items():
                _check_shape(shape.members[key], part, f"{place}.{key}")
        case MapShape():
            for key, part in value.items():
                _check_shape(shape.key, key, f"{place} key")
                _check_shape(shape.value, part, f"{place}.{key}")
        case ListShape():
            _refuse_if(most is not None and len(value) > most, place, f"has {len(value)} members")
            for part in value:
                _check_shape(shape.member, part, place)
        case StringShape():
            size = len(value.encode())
            _refuse_if(most is not None and size > most, place, f"has {size} bytes")
            pattern = shape.metadata.get("pattern", "")
            if pattern.startswith(r"[\u0020-"):
                allowed = _LINES if r"\r\n" in pattern else _LINE
                _refuse_if(not allowed.fullmatch(value), place, f"is {value!r}")


def _refuse_if(wrong: bool, place: str, said: str) -> None:
    if wrong:
        raise refusal("ValidationException", f"Value at '{place}' {said}.")


_MODEL = Session().get_service_model("glue")
