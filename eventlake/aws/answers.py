"""Error responses of AWS, parsed from errors of botocore and pyarrow, or from text."""

import re
from dataclasses import dataclass

_BOTOCORE = re.compile(
    r"An error occurred \((?P<code>[^)]*)\) when calling the (?P<operation>\w+) operation"
    r"(?: \([^)]*\))?: (?P<said>[^\n]*)"
)
_ARROW = re.compile(
    r"AWS Error (?P<code>\w+)(?: \(HTTP status (?P<status>\d+)\))? "
    r"during (?P<operation>\w+) operation(?:: (?P<said>[^\n]*))?"
)
_ARROW_OBJECT = re.compile(r"(?:key '(?P<key>[^'\n]*)' in )?bucket '(?P<bucket>[^'\n]*)'")
_ARROW_UNKNOWN = re.compile(r"Unable to parse ExceptionName: (\w+) Message: (.*)")
_IN_XML = re.compile(r"<Code>(?P<code>[^<]*)</Code><Message>(?P<said>[^<]*)</Message>")
_UNREACHABLE = re.compile(
    r"(EndpointConnectionError|ConnectTimeoutError|ReadTimeoutError|ConnectionClosedError"
    r"|HTTPClientError|ProxyConnectionError|SSLError): (?P<said>[^\n]*)"
)
_AUTHORIZED = re.compile(
    r"(?:User: (?P<principal>\S+) )?is not authorized to perform: (?P<action>[\w:*-]+)"
    r"(?: on resource: \"?(?P<resource>[^\s\"]+))?"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """An error response of a service: code, operation and message."""

    code: str
    operation: str = ""
    said: str = ""
    bucket: str = ""
    key: str = ""
    status: int = 0  # HTTP status; 0 if unknown

    @property
    def plain_code(self) -> str:
        """The normalized code: `AccessDeniedException` and `ACCESS_DENIED` become one."""
        return self.code.replace("_", "").lower().removesuffix("exception")

    @property
    def action(self) -> str | None:
        """The action that was denied, if the answer names it."""
        found = _AUTHORIZED.search(self.said)
        return found["action"] if found else None

    @property
    def principal(self) -> str | None:
        """The principal that was denied, if the answer names it."""
        found = _AUTHORIZED.search(self.said)
        return found["principal"] if found else None

    @property
    def resource(self) -> str | None:
        """The resource it was denied on, if the answer names it."""
        found = _AUTHORIZED.search(self.said)
        return found["resource"].rstrip(".,") if found and found["resource"] else None


def answer_of(error: BaseException) -> Answer | None:
    """The error response in an exception; None if AWS was not involved."""
    response = getattr(error, "response", None)
    if isinstance(response, dict) and "Error" in response:
        details = response["Error"]
        operation = str(getattr(error, "operation_name", ""))
        said = " ".join(str(details[part]) for part in ("Message", "Endpoint") if details.get(part))
        status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        return _unpacked(str(details.get("Code", "")), operation, said, status)
    if type(error).__module__.startswith("botocore."):
        return Answer(type(error).__name__, said=_line(str(error)))
    return answer_in(str(error))


def answer_in(text: str) -> Answer | None:
    """The error response in text, such as the stack trace of a Spark task."""
    if found := _ARROW.search(text):
        code, said = found["code"], found["said"] or ""
        if unknown := _ARROW_UNKNOWN.search(said):
            code, said = unknown[1], unknown[2]
        elif code == "UNKNOWN" and found["status"]:
            code = found["status"]
        said = _line(said.split(" (Request ID:")[0])
        line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        objects = list(_ARROW_OBJECT.finditer(line))  # two for a copy: source, target
        if not objects:
            return Answer(code, found["operation"], said)
        bucket, key = objects[-1]["bucket"], objects[-1]["key"] or ""
        return Answer(code, found["operation"], said, bucket, key)
    if found := _BOTOCORE.search(text):
        xml = _IN_XML.search(text, found.start())
        said = found["said"] if xml is None else xml[0]
        return _unpacked(found["code"], found["operation"], said)
    if found := _UNREACHABLE.search(text):
        return Answer(found[1], said=_line(found["said"]))
    return None


def _unpacked(code: str, operation: str, said: str, status: int = 0) -> Answer:
    """Some servers send XML where JSON is expected."""
    if xml := _IN_XML.search(said):
        code, said = xml["code"], xml["said"]
    return Answer(code, operation, _line(said), status=status)


def _line(text: str) -> str:
    return " ".join(text.split())


DENIED = frozenset({"accessdenied", "403", "forbidden", "unauthorizedoperation", "unauthorized"})
NO_CREDENTIALS = frozenset(
    {"nocredentialserror", "partialcredentialserror", "credentialretrievalerror", "profilenotfound"}
    | {"tokenretrievalerror", "ssotokenloaderror", "unauthorizedssotokenerror"}
    | {"missingauthenticationtoken"}
)
EXPIRED = frozenset(
    {"expiredtoken", "requestexpired", "tokenrefreshrequired", "expiredtokenexception"}
)
WRONG_KEYS = frozenset(
    {"invalidaccesskeyid", "invalidclienttokenid", "unrecognizedclient", "signaturedoesnotmatch"}
    | {"authfailure", "invalidtoken", "incompletesignature", "invalidsignature"}
)
SKEWED = frozenset({"requesttimetooskewed", "requestinthefuture"})
OTHER_REGION = frozenset(
    {"permanentredirect", "301", "307", "temporaryredirect", "authorizationheadermalformed"}
    | {"illegallocationconstraint", "optinrequired", "regiondisabled"}
)
NO_REGION = frozenset({"noregionerror", "invalidregionerror"})
NO_BUCKET = frozenset({"nosuchbucket", "invalidbucketname", "bucketalreadyexists"})
TROUBLE = frozenset(
    {"slowdown", "throttling", "throttled", "throttledexception", "requestlimitexceeded"}
    | {"toomanyrequests", "provisionedthroughputexceeded", "requestthrottled", "429"}
    | {"internalerror", "internalfailure", "internalserver", "internalservererror"}
    | {"internalservice"}
    | {"serviceunavailable", "serviceunavailableerror", "operationtimeout", "requesttimeout"}
    | {"500", "502", "503", "504", "408", "networkconnection", "endpointresolutionfailure"}
    | {"endpointconnectionerror", "connecttimeouterror", "readtimeouterror", "httpclienterror"}
    | {"connectionclosederror", "proxyconnectionerror", "sslerror", "connectionerror"}
    | {"responsestreamingerror", "incompletereaderror", "priorrequestnotcomplete"}
)
