"""Clients for `AzureAccess`: cached per process, with retries.

A separate module because importing Azure's clients is slow, and other lakes do not need them.
"""

import logging
import os
import random
import threading
import time
from typing import Any

import requests
from azure.core.exceptions import ClientAuthenticationError, ResourceNotFoundError
from azure.core.pipeline import PipelineRequest, PipelineResponse
from azure.core.pipeline.transport import RequestsTransport
from azure.identity import (
    ClientSecretCredential,
    DefaultAzureCredential,
    ManagedIdentityCredential,
)
from azure.keyvault.secrets import SecretClient
from azure.storage.blob import BlobServiceClient, ContainerClient, ExponentialRetry
from pyarrow import fs as pafs

from eventlake.azure.access import ATTEMPTS, AzureAccess
from eventlake.azure.refusals import azure_call
from eventlake.rules.errors import InvalidSetting
from eventlake.settings.azure import SignIn

logging.getLogger("azure").setLevel(logging.ERROR)  # it logs refusals that it raises
_RENEWED_SECONDS = 3600.0
"""Secrets are read again after this time, since they may have been replaced."""

PART_BYTES = 16 << 20
"""Files up to this size are uploaded in one request, larger ones in blocks."""

_CONNECTIONS = 256  # waiting threads may start others: see `Storage.each`


class Retries(ExponentialRetry):
    """Retries 5xx, throttling and broken connections, and marks responses to repeated requests."""

    def __init__(self) -> None:
        more = ATTEMPTS - 1
        super().__init__(retry_total=more, retry_connect=more, retry_read=more, retry_status=more)

    def get_backoff_time(self, settings: dict[str, Any]) -> float:
        longest: float = min(0.2 * 2 ** settings["count"], 20.0)
        return random.uniform(0.5, 1.0) * longest

    def increment(
        self, settings: Any, request: Any, response: Any = None, error: Any = None
    ) -> Any:
        """Whether to try again; a refused sign-in is final."""
        if isinstance(error, ClientAuthenticationError):
            return False
        return super().increment(settings, request, response, error)

    def send(self, request: PipelineRequest[Any]) -> PipelineResponse[Any, Any]:
        response: PipelineResponse[Any, Any] = super().send(request)  # type: ignore[no-untyped-call]
        response.http_response.sent_again = bool(response.context.get("history"))
        return response


class Sessions:
    """The credentials and clients of one process; a forked process starts without any."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.renewed_at = time.monotonic()
        self._lock = threading.RLock()
        self._known: dict[tuple[object, ...], Any] = {}

    @property
    def is_valid(self) -> bool:
        age = time.monotonic() - self.renewed_at
        return self.process == os.getpid() and age < _RENEWED_SECONDS

    def container(self, access: AzureAccess, host: str, name: str) -> ContainerClient:
        with self._lock:
            key = ("container", access, host, name)
            if key not in self._known:
                self._known[key] = self._service(access, host).get_container_client(name)
            client: ContainerClient = self._known[key]
            return client

    def arrow_files(self, access: AzureAccess, host: str) -> pafs.FileSystem:
        with self._lock:
            key = ("arrow", access, host)
            if key not in self._known:
                self._known[key] = self._arrow(access, host)
            files: pafs.FileSystem = self._known[key]
            return files

    def credential(self, access: AzureAccess) -> Any:
        """A credential that gives tokens; not for `account_key` and `sas`."""
        with self._lock:
            key = ("credential", access)
            if key not in self._known:
                self._known[key] = self._credential(access)
            return self._known[key]

    def _credential(self, access: AzureAccess) -> Any:
        match access.sign_in:
            case SignIn.SERVICE_PRINCIPAL:
                tenant, client = access.tenant_id or "", access.client_id or ""
                return ClientSecretCredential(tenant, client, self._secret(access))
            case SignIn.MANAGED_IDENTITY:
                return ManagedIdentityCredential(client_id=access.client_id)
        return DefaultAzureCredential()

    def _secret(self, access: AzureAccess) -> str:
        with self._lock:
            key = ("secret", access)
            if key not in self._known:
                self._known[key] = read_secret(access)
            secret: str = self._known[key]
            return secret

    def _service(self, access: AzureAccess, host: str) -> BlobServiceClient:
        """The client of a storage account."""
        key = ("service", access, host)
        if key not in self._known:
            endpoint, given = connection(host)
            session = requests.Session()
            adapter = requests.adapters.HTTPAdapter(pool_maxsize=_CONNECTIONS)
            session.mount("https://", adapter)
            session.mount("http://", adapter)
            self._known[key] = BlobServiceClient(
                endpoint,
                credential=self._blob_credential(access, host, given),
                retry_policy=Retries(),
                transport=RequestsTransport(
                    session=session, session_owner=False, connection_timeout=10, read_timeout=60
                ),
                max_single_put_size=PART_BYTES,
                max_block_size=PART_BYTES,
            )
        client: BlobServiceClient = self._known[key]
        return client

    def _blob_credential(self, access: AzureAccess, host: str, given: dict[str, str]) -> Any:
        secret = self._static_secret(access, given)
        if secret is None:
            return self.credential(access)
        # As text, so that URLs contain it: the source of a copy needs a SAS, too.
        is_key = secret[0] == "account_key"
        account = host.partition(".")[0]
        return {"account_name": account, "account_key": secret[1]} if is_key else secret[1]

    def _static_secret(self, access: AzureAccess, given: dict[str, str]) -> tuple[str, str] | None:
        """An account key or a SAS, as Arrow calls them; None if a credential gives tokens."""
        match access.sign_in:
            case SignIn.ACCOUNT_KEY:
                return "account_key", self._secret(access)
            case SignIn.SAS:
                return "sas_token", self._secret(access).lstrip("?")
            case SignIn.DEFAULT if "AccountKey" in given:
                return "account_key", given["AccountKey"]
            case SignIn.DEFAULT if "SharedAccessSignature" in given:
                return "sas_token", given["SharedAccessSignature"].lstrip("?")
        return None

    def _arrow(self, access: AzureAccess, host: str) -> pafs.FileSystem:
        account, _, domain = host.partition(".")
        endpoint, given = connection(host)
        scheme, _, place = endpoint.partition("://")
        # Arrow puts the account before a domain, and behind any other host.
        authority = place.partition("/")[0] if "/" in place else f".{place.partition('.')[2]}"
        dfs = authority if "/" in place else f".{domain}"
        secret = self._static_secret(access, given)
        options: dict[str, str | None] = {}
        if secret:  # Arrow appends a SAS to URLs as it is
            options[secret[0]] = f"?{secret[1]}" if secret[0] == "sas_token" else secret[1]
        if access.sign_in is SignIn.SERVICE_PRINCIPAL:
            options = {
                "tenant_id": access.tenant_id,
                "client_id": access.client_id,
                "client_secret": self._secret(access),
            }
        elif access.sign_in is SignIn.MANAGED_IDENTITY:
            options = {"client_id": access.client_id}
        return pafs.AzureFileSystem(
            account,
            blob_storage_authority=authority,
            blob_storage_scheme=scheme,
            dfs_storage_authority=dfs,
            dfs_storage_scheme=scheme,
            **options,
        )


def connection(host: str) -> tuple[str, dict[str, str]]:
    """The blob endpoint of an account, and its connection string from the environment, if any.

    A connection string names another endpoint for an emulator, or for a private one.
    """
    account, _, domain = host.partition(".")
    text = os.environ.get("AZURE_STORAGE_CONNECTION_STRING", "")
    parts = dict(part.partition("=")[::2] for part in text.strip().split(";") if part)
    endpoint = parts.get("BlobEndpoint", "").rstrip("/")
    names = (parts.get("AccountName"), endpoint.rpartition("/")[2].partition(".")[0])
    if account not in names:
        parts, endpoint = {}, ""
    return endpoint or f"https://{account}.{domain.replace('dfs.', 'blob.', 1)}", parts


def read_secret(access: AzureAccess) -> str:
    """The secret, from the environment or from Key Vault."""
    source = access.secret or f"${access.sign_in.variable}"
    if source.startswith("$"):
        if found := os.environ.get(source[1:]):
            return found
        raise InvalidSetting(
            f"Eventlake has invalid configuration for `azure.secret`: `sign_in` is "
            f"{access.sign_in}, and the environment variable {source[1:]} is not set. Set it for "
            "every process that runs Eventlake, or keep the secret in Key Vault: set `key_vault`, "
            "and `secret` to its name there."
        )
    vault = access.key_vault or ""
    url = vault if vault.startswith("https://") else f"https://{vault}.vault.azure.net"
    with azure_call(f"{url}/secrets/{source}"):
        try:
            return SecretClient(url, DefaultAzureCredential()).get_secret(source).value or ""
        except ResourceNotFoundError as error:
            raise InvalidSetting(
                f"Eventlake has invalid configuration for `azure.secret`: {url} has no secret "
                f"{source!r}. Create it there, or correct `secret` or `key_vault`."
            ) from error


_known: Sessions | None = None


def forget() -> None:
    global _known
    _known = None


def sessions() -> Sessions:
    """The sessions of this process."""
    global _known
    found = _known
    if found is None or not found.is_valid:
        found = _known = Sessions()
    return found
