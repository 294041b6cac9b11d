"""Settings of Azure: how to sign in, and where the secret for it is."""

import re
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from eventlake.settings.fields import SECRET, VARIABLE, SettingsGroup

_SECRET_NAME = re.compile(r"[0-9A-Za-z-]{1,127}", re.ASCII)
_TENANT = r"^[0-9A-Za-z][0-9A-Za-z.-]*$"
_ID = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
_VAULT = r"^([A-Za-z][0-9A-Za-z-]{2,23}|https://[0-9A-Za-z.:-]+/?)$"


class SignIn(StrEnum):
    """How to sign in."""

    DEFAULT = "default"  # environment, workload identity, managed identity, Azure CLI
    SERVICE_PRINCIPAL = "service_principal"
    MANAGED_IDENTITY = "managed_identity"
    ACCOUNT_KEY = "account_key"
    SAS = "sas"

    @property
    def variable(self) -> str | None:
        """The environment variable with the secret, unless the settings name another."""
        return _VARIABLES.get(self)


_VARIABLES = {
    SignIn.SERVICE_PRINCIPAL: "AZURE_CLIENT_SECRET",
    SignIn.ACCOUNT_KEY: "AZURE_STORAGE_KEY",
    SignIn.SAS: "AZURE_STORAGE_SAS_TOKEN",
}


def _secret_source(text: str) -> str:
    if not VARIABLE.fullmatch(text) and not _SECRET_NAME.fullmatch(text):
        raise ValueError(
            "allowed: $NAME, the environment variable that holds it, or its name in `key_vault`; "
            "never itself"
        )
    return text


class Azure(SettingsGroup):
    """How to sign in to Azure."""

    sign_in: Annotated[SignIn, Field(description=f"allowed: {' | '.join(SignIn)}")] = SignIn.DEFAULT
    tenant_id: (
        Annotated[str, Field(pattern=_TENANT, description="allowed: the id or domain of a tenant")]
        | None
    ) = None
    client_id: (
        Annotated[
            str, Field(pattern=_ID, description="allowed: the id of an application or identity")
        ]
        | None
    ) = None
    secret: Annotated[
        str | None,
        AfterValidator(lambda text: text and _secret_source(text)),
        Field(
            description="allowed: $NAME of an environment variable, or a name in `key_vault`",
            json_schema_extra=SECRET,
        ),
    ] = None
    key_vault: (
        Annotated[
            str, Field(pattern=_VAULT, description="allowed: the name of a Key Vault, or its URL")
        ]
        | None
    ) = None
