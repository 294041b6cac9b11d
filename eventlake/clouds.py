"""What is the same for every cloud: access as the settings define it, and errors of the lake."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

from eventlake.aws.access import AwsAccess
from eventlake.aws.refusals import aws_error
from eventlake.azure.access import AzureAccess
from eventlake.azure.refusals import azure_error
from eventlake.rules.errors import InvalidSetting, LakeError, error_in_trace
from eventlake.settings.models import Overridable


@dataclass(frozen=True, slots=True)
class Access:
    """Access to all clouds; holds no secret."""

    aws: AwsAccess = field(default_factory=AwsAccess)
    azure: AzureAccess = field(default_factory=AzureAccess)

    @classmethod
    def of(cls, settings: Overridable) -> Self:
        """The access that the settings of a lake or source define."""
        return cls(AwsAccess.of(settings), AzureAccess.of(settings.azure))


@contextmanager
def extra_packages(extra: str, setting: str) -> Iterator[None]:
    """Import packages that only some lakes need; says how to install them if they are missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise InvalidSetting(
            f"Eventlake has invalid configuration for `{setting}`: the package {error.name} that "
            f"it needs is not installed. Install it: pip install 'eventlake[{extra}]'."
        ) from error


def as_lake_error(error: BaseException) -> LakeError | None:
    """The lake error that an exception, or one of its causes, is or contains, if any."""
    cause: BaseException | None = error
    while cause is not None:
        if known := cause if isinstance(cause, LakeError) else error_in_trace(str(cause)):
            return known
        if known := aws_error(cause) or azure_error(cause):
            return known
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return None
