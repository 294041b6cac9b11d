"""Errors of Azure as errors of the lake: missing roles, wrong settings, unavailable services."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from eventlake.azure.answers import UNREACHABLE, Answer, answer_of, holds_signature
from eventlake.rules.errors import (
    InsufficientPermissions,
    InvalidSetting,
    LakeError,
    ServiceTrouble,
)
from eventlake.settings.azure import SignIn

_DENIED = frozenset(
    {"AuthorizationPermissionMismatch", "InsufficientAccountPermissions", "AuthorizationFailure"}
    | {"AuthorizationResourceTypeMismatch", "AuthorizationServiceMismatch", "AccessDenied"}
    | {"AuthorizationSourceIPMismatch", "AuthorizationProtocolMismatch", "Forbidden"}
    | {"ForbiddenByRbac", "ForbiddenByPolicy", "ForbiddenByFirewall", "PublicAccessNotPermitted"}
    | {"ForbiddenByConnection"}
)
_NO_CONTAINER = frozenset(
    {"ContainerNotFound", "FilesystemNotFound", "ContainerBeingDeleted", "ContainerDisabled"}
    | {"FilesystemBeingDeleted"}
)
_NO_CREDENTIALS = frozenset(
    {"CredentialUnavailableError", "NoAuthenticationInformation", "ClientAuthenticationError"}
)
_WRONG_CREDENTIALS = frozenset(
    {"AuthenticationFailed", "InvalidAuthenticationInfo", "Unauthorized"}
)
_TROUBLE = frozenset(
    {"ServerBusy", "InternalError", "OperationTimedOut", "TooManyRequests", "Throttled"}
    | {"ServiceRequestError", "ServiceResponseError", "IncompleteReadError"}
    | {"ServiceRequestTimeoutError", "ServiceResponseTimeoutError", "AccountBeingCreated"}
)
# Of Microsoft Entra ID: https://learn.microsoft.com/entra/identity-platform/reference-error-codes
_NO_TENANT = ("AADSTS90002", "AADSTS900021", "AADSTS900023", "AADSTS90013")
_NO_CLIENT = ("AADSTS700016", "AADSTS7000112", "AADSTS500011", "AADSTS90112", "AADSTS50034")
_EXPIRED_SECRET = ("AADSTS7000222",)
_WRONG_SECRET = ("AADSTS7000215", "AADSTS7000216", "AADSTS7000218")


@dataclass(frozen=True, slots=True)
class _Operation:
    """How messages describe an operation on blobs, and the action that a role must allow."""

    words: str
    action: str
    sas: str  # the permissions of a SAS

    @property
    def full_action(self) -> str:
        return f"Microsoft.Storage/storageAccounts/blobServices/containers/{self.action}"


_OPERATIONS = {
    "read": _Operation("download blobs from", "blobs/read", "r"),
    "list": _Operation("list blobs of", "blobs/read", "l"),
    "write": _Operation("upload blobs to", "blobs/write", "cw"),
    "delete": _Operation("delete blobs from", "blobs/delete", "d"),
}
_STAGING = "upload staging data to"
SAS_PERMISSIONS = "racwdl"
ROLE = "Storage Blob Data Contributor"
SECRET_ROLE = "Key Vault Secrets User"
GRANT = "Assign it: "
"""Begins the command that grants what is missing, at the end of a message."""

_PLACE = re.compile(r"abfss://(?P<container>[^@/]+)@(?P<account>[^./]+)[^/]*/?(?P<path>.*)")
_UNRESOLVED = re.compile(r"[Ff]ailed to resolve|[Cc]ould not resolve|Name or service not known")
_SECRET = re.compile(r"https://(?P<vault>[^./]+)[^/]*/secrets/(?P<name>.*)")


@contextmanager
def azure_call(resource: str, sign_in: SignIn | None = None) -> Iterator[None]:
    """Convert errors of Azure within the block to errors of the lake.

    `resource` is what the call is about: an `abfss://` URI, or the URL of a secret. Expected
    errors pass through unchanged: not found, already exists, modified concurrently.
    """
    try:
        yield
    except LakeError:
        raise
    except Exception as error:
        answer = answer_of(error)
        known = None if answer is None else _lake_error(answer, resource, sign_in)
        if known is None:
            raise
        raise known from (None if holds_signature(error) else error)


def azure_error(error: BaseException) -> LakeError | None:
    """The lake error for a response of Azure that an exception is or contains, if any."""
    answer = answer_of(error)
    return None if answer is None else _lake_error(answer, answer.resource)


def _lake_error(answer: Answer, resource: str, sign_in: SignIn | None = None) -> LakeError | None:
    """The error of the lake for a response; None for one that its caller expects."""
    if answer.code == "ClientAuthenticationError" and UNREACHABLE.search(answer.said):
        return _trouble(answer)
    if secret := _SECRET.match(resource):
        if answer.code in _DENIED:
            return _secret_refused(answer, secret["vault"], secret["name"])
    elif wrong := _wrong_storage(answer, resource):
        return wrong
    if wrong := _wrong_credentials(answer, sign_in):
        return wrong
    if answer.code in _DENIED or answer.status == 403:
        return _refused(answer, resource, sign_in)
    if answer.code in _TROUBLE or answer.status in (408, 429) or answer.status >= 500:
        return _trouble(answer)
    return None


def _refused(answer: Answer, resource: str, sign_in: SignIn | None) -> InsufficientPermissions:
    operation = _OPERATIONS.get(answer.operation) or _OPERATIONS["read"]
    place = _PLACE.match(resource)
    account, container = (place["account"], place["container"]) if place else ("?", "?")
    staging = place is not None and "segment-stage" in place["path"].split("/")
    words = _STAGING if staging and answer.operation == "write" else operation.words
    denied = (
        f"Eventlake does not have permissions to {words} container {container} of storage account "
        f"{account}: {operation.full_action} was refused ({answer.code})."
    )
    scope = (
        "/subscriptions/<subscription>/resourceGroups/<group>/providers/Microsoft.Storage/"
        f"storageAccounts/{account}/blobServices/default/containers/{container}"
    )
    if answer.code == "AuthorizationFailure" or "SourceIP" in answer.code:
        remedy = (
            f"A firewall of the account keeps this machine out, or the role is missing. Allow its "
            f"network under `Networking` of the account. The role is {ROLE!r}. {GRANT}"
            f"{_assignment(ROLE, scope)}"
        )
    elif sign_in is SignIn.SAS:
        remedy = (
            f"The SAS lacks a permission. Create one for the container with the permissions "
            f"{SAS_PERMISSIONS} ({operation.sas} for this request), and replace the secret."
        )
    else:
        remedy = (
            f"Role {ROLE!r} on the container allows it, if the container exists; a new assignment "
            "takes up to ten minutes. "
            f"{GRANT}{_assignment(ROLE, scope)}"
        )
    return InsufficientPermissions(f"{denied} {remedy}")


def _secret_refused(answer: Answer, vault: str, name: str) -> InsufficientPermissions:
    denied = (
        f"Eventlake does not have permissions to read secret {name!r} of Key Vault {vault}: "
        f"Microsoft.KeyVault/vaults/secrets/getSecret/action was refused ({answer.code})."
    )
    if answer.code in ("ForbiddenByFirewall", "ForbiddenByConnection"):
        return InsufficientPermissions(
            f"{denied} A firewall of the vault keeps this machine out: allow its network under "
            "`Networking` of the vault."
        )
    scope = (
        "/subscriptions/<subscription>/resourceGroups/<group>/providers/Microsoft.KeyVault/"
        f"vaults/{vault}"
    )
    return InsufficientPermissions(
        f"{denied} Role {SECRET_ROLE!r} on the vault allows it. {GRANT}"
        f"{_assignment(SECRET_ROLE, scope)}"
    )


def _assignment(role: str, scope: str) -> str:
    """The command that assigns a role."""
    return (
        f"az role assignment create --role {role!r} --assignee <the identity of datalake> "
        f"--scope {scope}"
    )


def _wrong_storage(answer: Answer, resource: str) -> InvalidSetting | None:
    place = _PLACE.match(resource)
    account, container = (place["account"], place["container"]) if place else ("?", "?")
    if answer.code in _NO_CONTAINER:
        return _invalid(
            "storage",
            f"storage account {account} has no container {container} ({answer.code}). Correct the "
            "name in `storage` or `raw`, or create the container.",
        )
    if answer.code == "AccountIsDisabled":
        return _invalid("storage", f"storage account {account} is disabled. Enable it.")
    if answer.code == "ServiceRequestError" and _UNRESOLVED.search(answer.said):
        return _invalid(
            "storage",
            f"storage account {account} cannot be found ({answer.said}). Correct the name in "
            "`storage` or `raw`; if it is right, see that this machine can resolve it.",
        )
    return None


def _wrong_credentials(answer: Answer, sign_in: SignIn | None) -> InvalidSetting | None:
    code, said = answer.code, f" ({answer.code}: {answer.said[:300]})"
    if code.startswith("AADSTS"):
        return _wrong_sign_in(code, said)
    unsigned = "failed to authenticate" in answer.said
    if code in _NO_CREDENTIALS:
        problem = (
            f"none were found{said}. Set `azure.sign_in` and what it needs, or run where a managed "
            "identity is attached to the machine, or log in with `az login`."
        )
    elif code == "KeyBasedAuthenticationNotPermitted":
        problem = (
            f"the storage account does not allow account keys{said}. Set `azure.sign_in` to "
            "service_principal or managed_identity."
        )
    elif "time frame" in answer.said or "Lifetime validation failed" in answer.said:
        problem = f"they have expired{said}. Replace the secret."
    elif "Issuer validation failed" in answer.said:
        return _invalid(
            "azure.tenant_id", f"the storage account belongs to another tenant{said}. Correct it."
        )
    elif code in _WRONG_CREDENTIALS or unsigned or (answer.status == 401 and not code):
        which = {SignIn.SAS: "the SAS", SignIn.ACCOUNT_KEY: "the account key"}
        found = which.get(sign_in, "them") if sign_in else "them"
        expired = " It may have expired." if sign_in is SignIn.SAS else ""
        problem = f"Azure does not accept {found}{said}.{expired} Replace the secret."
    else:
        return None
    return InvalidSetting(f"Eventlake has invalid Azure credentials: {problem}")


def _wrong_sign_in(code: str, said: str) -> InvalidSetting:
    if code in _NO_TENANT:
        return _invalid("azure.tenant_id", f"there is no such tenant{said}. Correct it.")
    if code in _NO_CLIENT:
        return _invalid(
            "azure.client_id",
            f"the tenant of `azure.tenant_id` has no such application{said}. Correct either.",
        )
    if code in _EXPIRED_SECRET:
        problem = f"the client secret has expired{said}. Create another, and replace it."
    elif code in _WRONG_SECRET:
        problem = (
            f"the client secret is wrong{said}. Use the value of the secret, not its id, and "
            "replace it."
        )
    else:
        problem = f"Microsoft Entra ID refuses the sign-in{said}."
    return InvalidSetting(f"Eventlake has invalid Azure credentials: {problem}")


def _invalid(setting: str, problem: str) -> InvalidSetting:
    return InvalidSetting(f"Eventlake has invalid configuration for `{setting}`: {problem}")


def _trouble(answer: Answer) -> ServiceTrouble:
    at = f" at {answer.host}" if answer.host else ""
    return ServiceTrouble(
        f"Azure did not answer as it should{at}, also after retries: {answer.code}: "
        f"{answer.said[:300]}. There is nothing to correct; the next sync tries again."
    )
