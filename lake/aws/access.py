"""Who we are on AWS: the usual credential chain, or a role assumed with it, renewed as needed.

An `AwsAccess` holds no secret, so it may be pickled, shown and logged. Each process that has one
makes its own credentials: from the environment, a profile, or the machine it runs on.
"""

import os
import threading
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, Self

from botocore.config import Config
from botocore.credentials import (
    AssumeRoleCredentialFetcher,
    Credentials,
    DeferredRefreshableCredentials,
    ReadOnlyCredentials,
)
from botocore.exceptions import NoCredentialsError
from botocore.session import Session

ATTEMPTS = 8  # with the waits between them doubling, about a minute of a service's trouble
_STS_WITHOUT_REGION = "us-east-1"


class HasAccess(Protocol):
    """Settings of a lake, or of one of its sources."""

    @property
    def region(self) -> str | None: ...

    @property
    def iam_role_arn(self) -> str | None: ...

    @property
    def external_id(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class AwsAccess:
    """A region, and a role to be assumed there if one is named."""

    region: str | None = None
    role_arn: str | None = None
    external_id: str | None = None
    session_name: str = "datalake"

    @classmethod
    def of(cls, settings: HasAccess) -> Self:
        """The access that the settings, or a source of its own, ask for."""
        return cls(settings.region, settings.iam_role_arn, settings.external_id)

    def without_role(self) -> Self:
        """The same for programs that AWS runs, which have a role already."""
        return replace(self, role_arn=None, external_id=None)

    def client(self, service: str) -> Any:
        """A boto3 client: one per process and service, safe to share between threads."""
        return _here().client(self, service)

    def session(self) -> Session:
        """The botocore session behind the clients, for what needs more than a client."""
        return _here().session(self)

    def credentials(self) -> ReadOnlyCredentials:
        """Keys good for ten minutes and more: ask again for every use, they may have changed."""
        found: Credentials | None = self.session().get_credentials()
        if found is None:
            raise NoCredentialsError()
        return found.get_frozen_credentials()

    def region_name(self) -> str | None:
        """The region of the settings, else of the environment or profile."""
        found: str | None = self.session().get_config_variable("region")
        return found


def forget_sessions() -> None:
    """Take the environment as it is now, at the next use."""
    global _known
    _known = None


class _Sessions:
    """The sessions and clients of one process; a forked child starts with none."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._lock = threading.RLock()
        self._sessions: dict[AwsAccess, Session] = {}
        self._clients: dict[tuple[AwsAccess, str], Any] = {}

    def session(self, access: AwsAccess) -> Session:
        with self._lock:
            if access not in self._sessions:
                self._sessions[access] = _session(access)
            return self._sessions[access]

    def client(self, access: AwsAccess, service: str) -> Any:
        with self._lock:  # to make clients is not thread-safe, to use them is
            key = (access, service)
            if key not in self._clients:
                made = self.session(access).create_client(service, config=client_config())
                self._clients[key] = made
            return self._clients[key]


_known: _Sessions | None = None


def _here() -> _Sessions:
    global _known
    found = _known
    if found is None or found.process != os.getpid():
        found = _known = _Sessions()
    return found


def client_config() -> Config:
    """Throttling, 5xx and time-outs are tried again with growing waits, nothing else is."""
    retries: dict[str, Any] = {"mode": "standard"}
    if "AWS_MAX_ATTEMPTS" not in os.environ:
        retries["total_max_attempts"] = ATTEMPTS
    # Servers of one's own are found by one name, not by one name per bucket.
    own = {"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"} & os.environ.keys()
    return Config(
        retries=retries,
        connect_timeout=10,
        read_timeout=60,
        max_pool_connections=64,
        s3={"addressing_style": "path"} if own else None,
    )


def _session(access: AwsAccess) -> Session:
    session = Session()
    if access.region:
        session.set_config_variable("region", access.region)
    if access.role_arn is None:
        return session
    region = session.get_config_variable("region") or _STS_WITHOUT_REGION
    creator = partial(session.create_client, region_name=region, config=client_config())
    fetcher = AssumeRoleCredentialFetcher(
        creator,
        _Caller(session.get_credentials()),
        access.role_arn,
        extra_args={
            "RoleSessionName": access.session_name,
            **({"ExternalId": access.external_id} if access.external_id else {}),
        },
    )
    assumed = Session()
    assumed.set_config_variable("region", session.get_config_variable("region"))
    # There is no public way to hand a session credentials that renew themselves.
    assumed._credentials = DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")
    return assumed


class _Caller:
    """Who assumes the role; that there is nobody is told only when it is needed."""

    def __init__(self, credentials: Credentials | None) -> None:
        self._credentials = credentials

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        if self._credentials is None:
            raise NoCredentialsError()
        return self._credentials.get_frozen_credentials()
