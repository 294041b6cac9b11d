"""Partitions in the form of Glue: conversion and batch calls."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from eventlake.aws.refusals import aws_call
from eventlake.catalog.base import CatalogPartition
from eventlake.catalog.external import Root, attempts, partition_of, partition_parameters
from eventlake.catalog.glue.calls import BUSY, EXISTS, NOT_FOUND, Fields, GlueCalls, code_of
from eventlake.rules.errors import ServiceTrouble


def new_partition(partition: CatalogPartition, like: Fields, root: Root) -> Fields:
    """The input for creating a partition; `like` is the storage descriptor of its table."""
    return {
        "Values": list(partition.values),
        "StorageDescriptor": {**like, "Location": root.uri(partition.location)},
        "Parameters": partition_parameters(partition),
    }


def moved_partition(
    partition: CatalogPartition,
    before: Fields,
    like: Fields,
    root: Root,
    known: Collection[str],
) -> Fields:
    """The input for changing a partition; fields of other programs stay."""
    taken = {key: value for key, value in before.items() if key in known and value is not None}
    return {
        **taken,
        "Parameters": partition_parameters(partition, before.get("Parameters")),
        "StorageDescriptor": {
            **like,
            **before.get("StorageDescriptor", {}),
            # Files of a moved partition may have other columns and types.
            "Columns": like.get("Columns", []),
            "Location": root.uri(partition.location),
        },
    }


def read_partition(got: Fields, root: Root) -> CatalogPartition:
    uri = got.get("StorageDescriptor", {}).get("Location", "")
    return partition_of(tuple(got["Values"]), uri, got.get("Parameters", {}), root)


Values = tuple[str, ...]

_READ, _CREATED, _UPDATED, _DELETED = 1000, 100, 100, 25
"""The maximum number of partitions in one call."""

_BUSY = BUSY | {"InternalServiceException", "InternalFailure", "ThrottlingException"}
"""Errors of single partitions that are retried here, because botocore does not see them."""

_REQUEST_BYTES = 1 << 20
"""Bytes per call: each partition repeats all columns, so wide tables allow fewer partitions."""


@dataclass(frozen=True)
class PartitionBatches:
    """The partitions of one table, read and changed in batches."""

    calls: GlueCalls
    database: str
    table: str

    def get(self, values: Iterable[Values]) -> dict[Values, Fields]:
        """The existing ones of these partitions."""
        found: dict[Values, Fields] = {}
        waiting = [{"Values": list(one)} for one in values]
        # An answer has what fits in it: of wide tables, few partitions each time.
        without_progress = attempts()
        while waiting:
            if next(without_progress, None) is None:
                raise ServiceTrouble(
                    f"Glue leaves out partitions of {self._name} however often it is asked for "
                    "them. The next run tries again."
                )
            left: list[Fields] = []
            for start in range(0, len(waiting), _READ):
                batch = waiting[start : start + _READ]
                answer = self._call("batch_get_partition", PartitionsToGet=batch)
                found |= {tuple(one["Values"]): one for one in answer.get("Partitions", ())}
                left += answer.get("UnprocessedKeys", ())
            if len(left) < len(waiting):
                without_progress = attempts()
            waiting = left
        return found

    def create(self, inputs: Iterable[Fields]) -> set[Values]:
        """Create partitions; returns the values of existing ones, which stay unchanged."""
        entries = {tuple(one["Values"]): one for one in inputs}
        return self._change(
            "batch_create_partition", "PartitionInputList", entries, _CREATED, EXISTS
        )

    def update(self, inputs: Iterable[Fields]) -> set[Values]:
        """Change partitions; returns the values of those that no longer exist."""
        entries = {
            tuple(one["Values"]): {"PartitionValueList": one["Values"], "PartitionInput": one}
            for one in inputs
        }
        return self._change("batch_update_partition", "Entries", entries, _UPDATED, NOT_FOUND)

    def delete(self, values: Iterable[Values]) -> None:
        """Remove partitions; missing ones are ignored."""
        entries = {one: {"Values": list(one)} for one in values}
        self._change("batch_delete_partition", "PartitionsToDelete", entries, _DELETED, NOT_FOUND)

    def _change(
        self,
        operation: str,
        argument: str,
        entries: Mapping[Values, Fields],
        most: int,
        expected: str,
    ) -> set[Values]:
        """The values of the entries that Glue rejected for the expected reason."""
        left_alone: set[Values] = set()
        waiting = dict(entries)
        for last in attempts():
            busy: dict[Values, Fields] = {}
            for batch in _batches(waiting, most):
                for values, code, said in self._refused(operation, argument, batch, expected):
                    if code == expected:
                        left_alone.add(values)
                    elif code in _BUSY and not last:
                        busy[values] = entries[values]
                    else:
                        raise self._error(operation, code, said)
            waiting = busy
            if not waiting:
                break
        return left_alone

    def _refused(
        self, operation: str, argument: str, batch: Mapping[Values, Fields], expected: str
    ) -> Iterator[tuple[Values, str, str]]:
        """The rejected partitions of one call, and the reasons."""
        try:
            answer = self._call(operation, **{argument: list(batch.values())})
        except ClientError as error:
            if expected != EXISTS or code_of(error) != EXISTS:
                raise
            # One refused partition fails the whole call: the caller checks them again.
            yield from ((values, EXISTS, "") for values in batch)
            return
        for failure in answer.get("Errors", ()):
            values = failure.get("PartitionValues") or failure["PartitionValueList"]
            detail = failure.get("ErrorDetail", {})
            code, said = detail.get("ErrorCode", "Unknown"), detail.get("ErrorMessage", "")
            yield tuple(values), code, said

    def _call(self, operation: str, **arguments: Any) -> Fields:
        return self.calls.call(
            operation, self._name, DatabaseName=self.database, TableName=self.table, **arguments
        )

    def _error(self, operation: str, code: str, said: str) -> Exception:
        """The error of a single partition, as a failed call would raise it."""
        method = self.calls.client.meta.method_to_api_mapping[operation]
        refusal = ClientError({"Error": {"Code": code, "Message": said}}, method)
        try:
            with aws_call(self._name):
                raise refusal
        except Exception as refusal:
            return refusal

    @property
    def _name(self) -> str:
        return f"{self.database}.{self.table}"


def _batches(entries: Mapping[Values, Fields], most: int) -> Iterator[dict[Values, Fields]]:
    """Batches of entries, limited by number and by size."""
    batch: dict[Values, Fields] = {}
    size = 0
    for values, entry in entries.items():
        weight = len(json.dumps(entry, default=str))
        if batch and (len(batch) == most or size + weight > _REQUEST_BYTES):
            yield batch
            batch, size = {}, 0
        batch[values] = entry
        size += weight
    if batch:
        yield batch
