"""Access to AWS: the default credential chain, optionally with an assumed role.

An `AwsAccess` holds no secret, so it can be pickled, shown and logged. Each process creates its
own credentials: from the environment, a profile, or the instance role.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from botocore.credentials import ReadOnlyCredentials
    from botocore.session import Session

    from eventlake.aws.sessions import Sessions

ATTEMPTS = 8  # with exponential backoff, about a minute in total


class HasAccess(Protocol):
    """Settings of a lake or a source."""

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
    """A region, and optionally a role to assume."""

    region: str | None = None
    role_arn: str | None = None
    external_id: str | None = None
    # False: the external id is the default, the workspace id. Error messages mention this.
    external_id_is_set: bool = field(default=True, compare=False)

    @classmethod
    def of(cls, settings: HasAccess) -> Self:
        """The access that the settings of a lake or source define."""
        return cls(
            settings.region,
            settings.iam_role_arn,
            settings.external_id,
            external_id_is_set=settings.external_id_is_set,
        )

    def without_role(self) -> Self:
        """The same without role, for programs on AWS that have a role of their own."""
        return replace(self, role_arn=None, external_id=None)

    def client(self, service: str) -> Any:
        """A boto3 client: one per process and service, safe to share between threads."""
        return _sessions().client(self, service)

    def session(self) -> "Session":
        """The botocore session of the clients."""
        return _sessions().session(self)

    def credentials(self) -> "ReadOnlyCredentials":
        """Credentials valid for at least ten minutes. Do not keep them: they are renewed."""
        return _sessions().credentials(self)

    def region_name(self) -> str | None:
        """The region from the settings, else from the environment or profile."""
        found: str | None = self.session().get_config_variable("region")
        return found


def forget_sessions() -> None:
    """Discard cached sessions, so that the next use reads the environment again."""
    from eventlake.aws import sessions

    sessions.forget()


def _sessions() -> "Sessions":
    from eventlake.aws.sessions import sessions  # slow import, needed on AWS only

    return sessions()
