"""Access to Azure: how to sign in, and where the secret for it is.

An `AzureAccess` holds no secret, so it can be pickled, shown and logged. Each process reads the
secret itself, from the environment or from Key Vault.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from eventlake.settings.azure import Azure, SignIn

if TYPE_CHECKING:
    from azure.storage.blob import ContainerClient
    from pyarrow import fs as pafs

    from eventlake.azure.sessions import Sessions

ATTEMPTS = 8  # with exponential backoff, about a minute in total


@dataclass(frozen=True, slots=True)
class AzureAccess:
    """How to sign in to Azure."""

    sign_in: SignIn = SignIn.DEFAULT
    tenant_id: str | None = None
    client_id: str | None = None
    secret: str | None = None  # `$NAME` of an environment variable, or a name in `key_vault`
    key_vault: str | None = None

    @classmethod
    def of(cls, azure: Azure) -> Self:
        """The access that the settings of a lake or source define."""
        return cls(azure.sign_in, azure.tenant_id, azure.client_id, azure.secret, azure.key_vault)

    def container(self, host: str, name: str) -> "ContainerClient":
        """A client of a container, safe to share between threads. `host`: of the DFS endpoint."""
        return _sessions().container(self, host, name)

    def arrow_files(self, host: str) -> "pafs.FileSystem":
        """The Arrow file system of a storage account."""
        return _sessions().arrow_files(self, host)

    def credential(self) -> Any:
        """The credential of other clients of Azure, which gives tokens."""
        return _sessions().credential(self)


def forget_sessions() -> None:
    """Discard cached clients, so that the next use reads the environment again."""
    from eventlake.azure import sessions

    sessions.forget()


def _sessions() -> "Sessions":
    from eventlake.azure.sessions import sessions  # slow import, needed on Azure only

    return sessions()
