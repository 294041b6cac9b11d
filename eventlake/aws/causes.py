"""The causes that AWS's answers have, by their codes."""

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
