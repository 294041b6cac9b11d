"""Calls to Glue: with the account's catalog, all pages, and retries of transient errors."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from eventlake.aws.access import AwsAccess
from eventlake.aws.refusals import aws_call
from eventlake.catalog.external import attempts
from eventlake.rules.errors import InvalidSetting

NOT_FOUND = "EntityNotFoundException"
EXISTS = "AlreadyExistsException"
_FULL = "ResourceNumberLimitExceededException"
BUSY = frozenset(
    {
        "ConcurrentModificationException",
        "FederationSourceRetryableException",
        "OperationTimeoutException",
        "ResourceNotReadyException",
    }
)
"""Transient errors of Glue; botocore retries those that all services have."""

Fields = dict[str, Any]


@dataclass(frozen=True)
class GlueCalls:
    """A Glue client and a catalog id; None is the catalog of the account of the caller."""

    access: AwsAccess
    catalog_id: str | None = None

    @property
    def client(self) -> Any:
        return self.access.client("glue")

    def fields_of(self, shape: str) -> frozenset[str]:
        """The fields of a request shape, as far as this version of botocore knows."""
        return frozenset(self.client.meta.service_model.shape_for(shape).members)

    def once(self, operation: str, **arguments: Any) -> Fields:
        """One call, by the name of the client's method; errors are those of botocore."""
        if self.catalog_id is not None:
            arguments["CatalogId"] = self.catalog_id
        answer: Fields = getattr(self.client, operation)(**arguments)
        return answer

    def call(self, operation: str, about: str, **arguments: Any) -> Fields:
        """One call about a database or a table, repeated while Glue is busy.

        Not found and already exists are raised as ClientError of botocore.
        """
        # Adds the missing permission to the error of a denied call.
        with aws_call(about):
            for last in attempts():
                try:
                    return self.once(operation, **arguments)
                except ClientError as error:
                    if code_of(error) == _FULL:
                        raise _over_limit(operation, about, error) from error
                    if last or code_of(error) not in BUSY:
                        raise
        raise AssertionError("the last attempt has returned or raised")

    def pages(self, operation: str, about: str, **arguments: Any) -> Iterator[Fields]:
        """Every page of a listing."""
        page = self.call(operation, about, **arguments)
        yield page
        while token := page.get("NextToken"):
            page = self.call(operation, about, NextToken=token, **arguments)
            yield page


def code_of(error: ClientError) -> str:
    return str(error.response["Error"]["Code"])


_LIMITS = {"create_database": "catalog_databases", "create_table": "catalog_tables"}


def _over_limit(operation: str, about: str, error: ClientError) -> InvalidSetting:
    said = error.response["Error"].get("Message", "")
    lower = (
        f" Then set `limits.{limit}` to what the account has: events that need more are rejected."
        if (limit := _LIMITS.get(operation))
        else ""
    )
    return InvalidSetting(
        f"Glue makes no more: {about} is over a limit of the AWS account ({said}). Ask AWS for a "
        f"higher one, or remove what is not needed.{lower}"
    )
