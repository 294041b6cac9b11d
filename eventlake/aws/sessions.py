"""botocore sessions for `AwsAccess`: cached per process, with retries and renewed credentials.

A separate module because importing botocore is slow, and local lakes do not need it.
"""

import os
import threading
from contextlib import suppress
from datetime import datetime
from functools import cache, partial
from typing import Any

from botocore.config import Config
from botocore.credentials import (
    AssumeRoleCredentialFetcher,
    Credentials,
    DeferredRefreshableCredentials,
    ReadOnlyCredentials,
)
from botocore.exceptions import NoCredentialsError
from botocore.loaders import Loader, create_loader
from botocore.session import Session
from botocore.utils import parse_timestamp

from eventlake.aws.access import ATTEMPTS, AwsAccess
from eventlake.aws.refusals import role_call

_STS_WITHOUT_REGION = "us-east-1"


class Sessions:
    """The sessions and clients of one process; a forked process starts without any."""

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

    def credentials(self, access: AwsAccess) -> ReadOnlyCredentials:
        found: Credentials | None = self.session(access).get_credentials()
        if found is None:
            raise NoCredentialsError()
        return found.get_frozen_credentials()

    def client(self, access: AwsAccess, service: str) -> Any:
        with self._lock:  # creating clients is not thread-safe, using them is
            key = (access, service)
            if key not in self._clients:
                made = self.session(access).create_client(service, config=client_config())
                self._clients[key] = made
            return self._clients[key]


_known: Sessions | None = None


def forget() -> None:
    global _known
    _known = None


def sessions() -> Sessions:
    """The sessions of this process."""
    global _known
    found = _known
    if found is None or found.process != os.getpid():
        found = _known = Sessions()
    return found


def client_config() -> Config:
    """Retries throttling, 5xx and timeouts with exponential backoff, and nothing else."""
    retries: dict[str, Any] = {"mode": "standard"}
    if "AWS_MAX_ATTEMPTS" not in os.environ:
        retries["total_max_attempts"] = ATTEMPTS
    # Custom endpoints have one host name, not one per bucket.
    own = {"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"} & os.environ.keys()
    return Config(
        retries=retries,
        connect_timeout=10,
        read_timeout=60,
        max_pool_connections=256,  # waiting threads may start others: see `Storage.each`
        s3={"addressing_style": "path"} if own else None,
    )


@cache
def _descriptions() -> Loader:
    """The loader of service descriptions, shared because reading them is slow."""
    return create_loader(Session().get_config_variable("data_path"))


def _new_session() -> Session:
    session = Session()
    session.register_component("data_loader", _descriptions())
    answers = session.get_component("response_parser_factory")
    answers.set_parser_defaults(timestamp_parser=_timestamp)
    return session


def _timestamp(value: Any) -> datetime:
    """Parse a timestamp of a response; botocore's own parser dominates the time of a listing."""
    if isinstance(value, str) and value.endswith("Z"):
        with suppress(ValueError):
            return datetime.fromisoformat(value)
    parsed: datetime = parse_timestamp(value)
    return parsed


def _session(access: AwsAccess) -> Session:
    session = _new_session()
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
            "RoleSessionName": "datalake",
            **({"ExternalId": access.external_id} if access.external_id else {}),
        },
    )

    def assume() -> Any:
        # Any call may trigger this: convert errors here, where the external id is known.
        with role_call(access):
            return fetcher.fetch_credentials()

    assumed = _new_session()
    assumed.set_config_variable("region", session.get_config_variable("region"))
    # botocore has no public API to set refreshable credentials.
    assumed._credentials = DeferredRefreshableCredentials(assume, "assume-role")
    return assumed


class _Caller:
    """The credentials that assume the role; missing ones raise an error on first use."""

    def __init__(self, credentials: Credentials | None) -> None:
        self._credentials = credentials

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        if self._credentials is None:
            raise NoCredentialsError()
        return self._credentials.get_frozen_credentials()
