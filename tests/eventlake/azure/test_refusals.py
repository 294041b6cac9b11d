"""Each refusal of Azure becomes an error that says what to grant or to correct."""

import json
from contextlib import ExitStack

import pytest

from eventlake.azure.access import AzureAccess, forget_sessions
from eventlake.azure.refusals import azure_error
from eventlake.clouds import as_lake_error
from eventlake.rules.errors import (
    InsufficientPermissions,
    InvalidSetting,
    LakeError,
    ServiceTrouble,
)
from eventlake.settings.azure import SignIn
from eventlake.storage.adls import AdlsStorage
from tests.support.servers.azure_answers import Reply, answering
from tests.support.servers.azurite import ACCOUNT, Azurite

SCOPE = f"storageAccounts/{ACCOUNT}/blobServices/default/containers/lake"


@pytest.mark.parametrize(
    ("reply", "kind", "expected"),
    [
        (
            Reply(403, "AuthorizationPermissionMismatch"),
            InsufficientPermissions,
            "Eventlake does not have permissions to upload blobs to container lake of storage "
            f"account {ACCOUNT}: Microsoft.Storage/storageAccounts/blobServices/containers/blobs/"
            "write was refused (AuthorizationPermissionMismatch). Role 'Storage Blob Data "
            "Contributor'",
        ),
        (
            Reply(403, "AuthorizationFailure", "This request is not authorized to perform this."),
            InsufficientPermissions,
            "A firewall of the account keeps this machine out",
        ),
        (
            Reply(403, "AuthenticationFailed", "Server failed to authenticate the request."),
            InvalidSetting,
            "Eventlake has invalid Azure credentials: Azure does not accept them",
        ),
        (
            Reply(403, "AuthenticationFailed", "Signature not valid in the specified time frame"),
            InvalidSetting,
            "Eventlake has invalid Azure credentials: they have expired",
        ),
        (
            Reply(401, "InvalidAuthenticationInfo", "Issuer validation failed. Issuer did not m"),
            InvalidSetting,
            "Eventlake has invalid configuration for `azure.tenant_id`: the storage account "
            "belongs to another tenant",
        ),
        (
            Reply(403, "KeyBasedAuthenticationNotPermitted"),
            InvalidSetting,
            "Eventlake has invalid Azure credentials: the storage account does not allow account",
        ),
        (
            Reply(409, "ContainerBeingDeleted"),
            InvalidSetting,
            f"configuration for `storage`: storage account {ACCOUNT} has no container lake",
        ),
        (
            Reply(403, "AccountIsDisabled"),
            InvalidSetting,
            f"configuration for `storage`: storage account {ACCOUNT} is disabled",
        ),
    ],
)
def test_a_refused_write(
    azurite: Azurite,
    monkeypatch: pytest.MonkeyPatch,
    reply: Reply,
    kind: type[LakeError],
    expected: str,
) -> None:
    storage = AdlsStorage(f"abfss://lake@{ACCOUNT}")
    refused = pytest.raises(kind)
    with answering(monkeypatch, "PUT", "lake/a", reply), refused as caught:
        storage.write("a", b"x")
    assert expected in str(caught.value)
    if kind is InsufficientPermissions:
        assert str(caught.value).endswith(SCOPE)
        assert "az role assignment create --role 'Storage Blob Data Contributor'" in str(
            caught.value
        )


def test_an_account_that_cannot_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventlake.azure.sessions.Retries.get_backoff_time", lambda *_: 0.0)
    monkeypatch.setenv("AZURE_STORAGE_KEY", "QUFB")
    access = AzureAccess(SignIn.ACCOUNT_KEY)
    forget_sessions()
    with pytest.raises(InvalidSetting, match=r"`storage`: storage account nosuch cannot be found"):
        AdlsStorage("abfss://lake@nosuch.dfs.storage.invalid", access).read("a")


TENANT = "contoso.example"
CLIENT = "0b7c1f7e-5c1a-4b9e-9f63-0123456789ab"
LOGIN = f"https://login.microsoftonline.com/{TENANT}"
OPENID = {
    "issuer": f"{LOGIN}/v2.0",
    "authorization_endpoint": f"{LOGIN}/oauth2/v2.0/authorize",
    "token_endpoint": f"{LOGIN}/oauth2/v2.0/token",
    "tenant_discovery_endpoint": f"{LOGIN}/v2.0/.well-known/openid-configuration",
    "metadata": [],
    "api-version": "1.1",
}


def entra(content: object, status: int = 200) -> Reply:
    body = json.dumps(content).encode()
    return Reply(status, headers={"Content-Type": "application/json"}, body=body)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("AADSTS7000215: Invalid client secret provided.", "credentials: the client secret is wr"),
        ("AADSTS7000222: The provided client secret keys are exp", "the client secret has expired"),
        (
            "AADSTS700016: Application with identifier was not found",
            "for `azure.client_id`: the te",
        ),
        ("AADSTS90002: Tenant 'contoso.example' not found.", "for `azure.tenant_id`: there is no "),
        ("AADSTS53003: Access has been blocked by Conditional", "Microsoft Entra ID refuses the s"),
    ],
)
def test_a_refused_sign_in(
    azurite: Azurite, monkeypatch: pytest.MonkeyPatch, code: str, expected: str
) -> None:
    monkeypatch.delenv("AZURE_STORAGE_CONNECTION_STRING")
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "the-secret-of-the-test")
    access = AzureAccess(SignIn.SERVICE_PRINCIPAL, TENANT, CLIENT)
    refused = entra({"error": "invalid_client", "error_description": code}, 401)
    forget_sessions()
    with ExitStack() as stack:
        stack.enter_context(
            answering(monkeypatch, "GET", "login.microsoftonline.com", *[entra(OPENID)] * 4)
        )
        stack.enter_context(answering(monkeypatch, "POST", LOGIN, *[refused] * 4))
        caught = stack.enter_context(pytest.raises(InvalidSetting))
        AdlsStorage(f"abfss://lake@{ACCOUNT}.dfs.core.windows.net", access).read("a")
    assert expected in str(caught.value)
    assert "the-secret-of-the-test" not in str(caught.value)


def vault(status: int, code: str, inner: str) -> Reply:
    found = {"error": {"code": code, "message": "Caller is not ...", "innererror": {"code": inner}}}
    return entra(found, status)


@pytest.mark.parametrize(
    ("reply", "kind", "expected"),
    [
        (
            vault(403, "Forbidden", "ForbiddenByRbac"),
            InsufficientPermissions,
            "read secret 'lake-secret' of Key Vault vault-1: Microsoft.KeyVault/vaults/secrets/"
            "getSecret/action was refused (ForbiddenByRbac). Role 'Key Vault Secrets User'",
        ),
        (
            vault(403, "Forbidden", "ForbiddenByFirewall"),
            InsufficientPermissions,
            "A firewall of the vault keeps this machine out",
        ),
        (
            vault(404, "SecretNotFound", "SecretNotFound"),
            InvalidSetting,
            "for `azure.secret`: https://vault-1.vault.azure.net has no secret 'lake-secret'",
        ),
    ],
)
def test_a_secret_in_key_vault(
    azurite: Azurite,
    monkeypatch: pytest.MonkeyPatch,
    reply: Reply,
    kind: type[LakeError],
    expected: str,
) -> None:
    """The vault challenges first; the identity of the machine has a token for it."""
    challenge = Reply(
        401,
        headers={
            "WWW-Authenticate": f'Bearer authorization="{LOGIN}", '
            'resource="https://vault.azure.net"'
        },
    )
    for name, value in (("TENANT_ID", TENANT), ("CLIENT_ID", CLIENT), ("CLIENT_SECRET", "x")):
        monkeypatch.setenv(f"AZURE_{name}", value)
    token = entra({"token_type": "Bearer", "expires_in": 3600, "access_token": "the-token"})
    access = AzureAccess(
        SignIn.SERVICE_PRINCIPAL, TENANT, CLIENT, secret="lake-secret", key_vault="vault-1"
    )
    forget_sessions()
    with ExitStack() as stack:
        for method, part, replies in (
            ("GET", "login.microsoftonline.com", [entra(OPENID)] * 4),
            ("POST", LOGIN, [token]),
            ("GET", "vault-1.vault.azure.net/secrets/lake-secret", [challenge, reply]),
        ):
            stack.enter_context(answering(monkeypatch, method, part, *replies))
        caught = stack.enter_context(pytest.raises(kind))
        AdlsStorage(f"abfss://lake@{ACCOUNT}", access).read("a")
    assert expected in str(caught.value)


ARROW = (
    "GetProperties failed for 'https://acct.blob.core.windows.net/lake/a?sig=abc'. Cannot "
    "initialise an ObjectInputFile without knowing the file size. Azure Error: [{}] {} {}\n\n"
    "Request ID: 72b117ad"
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (ARROW.format("AuthorizationPermissionMismatch", 403, "x"), InsufficientPermissions),
        (ARROW.format("ServerBusy", 503, "x"), ServiceTrouble),
        (ARROW.format("", "", "Fail to get a new connection for: http://a"), ServiceTrouble),
        (ARROW.format("AuthenticationFailed", 403, "x"), InvalidSetting),
    ],
)
def test_an_error_of_arrow_in_the_text_of_a_task(text: str, kind: type[LakeError]) -> None:
    error = RuntimeError(f"Traceback (most recent call last):\n  ...\nOSError: {text}")
    known = as_lake_error(error)
    assert type(known) is kind
    assert "sig=abc" not in str(known)
    if kind is InsufficientPermissions:
        assert "download blobs from container lake of storage account acct" in str(known)


def test_other_errors_are_none_of_azure() -> None:
    for error in (OSError("disk"), ValueError("Azure"), RuntimeError("HTTP 403")):
        assert azure_error(error) is None
