"""Who we are on AWS: the usual credential chain, or a role assumed with it, renewed as needed.

An `AwsAccess` holds no secret, so it may be pickled, shown and logged. Each process that has one
makes its own credentials: from the environment, a profile, or the machine it runs on.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from botocore.credentials import ReadOnlyCredentials
    from botocore.session import Session

    from eventlake.aws.sessions import Sessions

ATTEMPTS = 8  # with the waits between them doubling, about a minute of a service's trouble


class HasAccess(Protocol):
    """Settings of a lake, or of one of its sources."""

    @property
    def region(self) -> str | None: ...

    @property
    def iam_role_arn(self) -> str | None: ...

    @property
    def external_id(self) -> str | None: ...

    @property
    def external_id_is_set(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class AwsAccess:
    """A region, and a role to be assumed there if one is named."""

    region: str | None = None
    role_arn: str | None = None
    external_id: str | None = None
    # False: nobody chose the external id, it is the workspace's; said where it is refused.
    external_id_is_set: bool = field(default=True, compare=False)

    @classmethod
    def of(cls, settings: HasAccess) -> Self:
        """The access that the settings, or a source of its own, ask for."""
        return cls(
            settings.region,
            settings.iam_role_arn,
            settings.external_id,
            external_id_is_set=settings.external_id_is_set,
        )

    def without_role(self) -> Self:
        """The same for programs that AWS runs, which have a role already."""
        return replace(self, role_arn=None, external_id=None)

    def client(self, service: str) -> Any:
        """A boto3 client: one per process and service, safe to share between threads."""
        return _sessions().client(self, service)

    def session(self) -> "Session":
        """The botocore session behind the clients, for what needs more than a client."""
        return _sessions().session(self)

    def credentials(self) -> "ReadOnlyCredentials":
        """Keys good for ten minutes and more: ask again for every use, they may have changed."""
        return _sessions().credentials(self)

    def region_name(self) -> str | None:
        """The region of the settings, else of the environment or profile."""
        found: str | None = self.session().get_config_variable("region")
        return found


def forget_sessions() -> None:
    """Take the environment as it is now, at the next use."""
    from eventlake.aws import sessions

    sessions.forget()


def _sessions() -> "Sessions":
    from eventlake.aws.sessions import sessions  # takes a while, and only lakes on AWS need it

    return sessions()
