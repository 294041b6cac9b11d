"""Error responses of Azure, parsed from errors of its clients and of Arrow, or from text."""

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

_ARROW = re.compile(r"Azure Error: \[(?P<code>\w*)\] (?:(?P<status>\d{3}) )?(?P<said>[^\n]*)")
_ARROW_CALL = re.compile(r"(?P<operation>[A-Z]\w+) failed for '(?P<url>https?://[^']*)'")
_SIGN_IN = re.compile(r"AADSTS\d+")
_REQUEST = re.compile(r"\s*(?:RequestId|Request ID|Trace ID|Content):.*", re.DOTALL)
_SIGNATURE = re.compile(r"(sig=)[^&\s'\"]+")
UNREACHABLE = re.compile(
    r"Failed to resolve|Name or service not known|[Cc]ould not (?:connect|resolve)"
    r"|Connection refused|Fail to get a new connection|timed out|Connection aborted"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """An error response: its code, HTTP status, operation and message."""

    code: str
    status: int = 0
    operation: str = ""  # read, write, delete, list
    said: str = ""
    url: str = ""

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def resource(self) -> str:
        """The URI of the blob in the URL, if it is that of a storage account."""
        host, path = self.host, urlsplit(self.url).path
        account, blob, domain = host.partition(".blob.")
        if not blob:
            return ""
        container, _, name = path.lstrip("/").partition("/")
        return f"abfss://{container}@{account}.dfs.{domain}/{name}"


def answer_of(error: BaseException) -> Answer | None:
    """The error response in an exception; None if Azure was not involved."""
    kind = type(error)
    if kind.__module__.partition(".")[0] != "azure":
        return answer_in(str(error))
    said = one_line(getattr(error, "message", "") or str(error))
    if found := _SIGN_IN.search(said):
        return Answer(found[0], said=said)
    code = getattr(error, "error_code", None) or _nested_code(error)
    code = str(getattr(code, "value", code) or kind.__name__)
    request = getattr(getattr(error, "response", None), "request", None)
    url = getattr(request, "url", "")
    operation = _OPERATIONS.get(getattr(request, "method", ""), "")
    if operation == "read" and "comp=list" in url:
        operation = "list"
    status = int(getattr(error, "status_code", None) or 0)
    return Answer(code, status, operation, said, url)


def answer_in(text: str) -> Answer | None:
    """The error response in a message of Arrow, or in a stack trace with one."""
    found = _ARROW.search(text)
    if found is None:
        return None
    begin = text[: found.start()]
    call = next(reversed(list(_ARROW_CALL.finditer(begin))), None)
    code = found["code"] or ("ServiceRequestError" if UNREACHABLE.search(found["said"]) else "")
    if sign_in := _SIGN_IN.search(text, found.start()):
        code = sign_in[0]
    url = call["url"] if call else ""
    return Answer(code, int(found["status"] or 0), "read", one_line(found["said"]), url)


_OPERATIONS = {"GET": "read", "HEAD": "read", "PUT": "write", "POST": "write", "DELETE": "delete"}


def _nested_code(error: BaseException) -> str | None:
    """The code of Key Vault and other services that return JSON; the innermost is the clearest."""
    found = getattr(error, "error", None)
    inner = getattr(found, "innererror", None)
    code = (inner or {}).get("code") if isinstance(inner, dict) else None
    text = code or getattr(found, "code", None)
    return str(text) if text else None


def one_line(text: str) -> str:
    """The message without request ids, line breaks and signatures."""
    return " ".join(unquote_safely(_REQUEST.sub("", text)).split())


def unquote_safely(text: str) -> str:
    return _SIGNATURE.sub(r"\1…", unquote(text) if "sig%3D" in text else text)


def holds_signature(error: BaseException) -> bool:
    """Whether the text of an error contains a SAS, which must not be logged."""
    return "sig=" in str(error)
