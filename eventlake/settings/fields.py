"""Types of single settings, with descriptions of allowed values."""

import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import partial
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from eventlake.rules import schedules
from eventlake.settings.places import raw_place, refusal, storage_place

VARIABLE = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*")
SECRET = {"secret": True}
"""Marks settings whose values must not appear in messages."""
_KEY = re.compile(r"spark\.[A-Za-z0-9_.-]+", re.ASCII)
_SOME_TEXT = (re.compile(r"(?s).+"), "text, a number, true or false")
_SIZE = (re.compile(r"[1-9]\d*[kmgt]b?", re.ASCII | re.IGNORECASE), "a size such as 2g")
_COUNT = (re.compile(r"[1-9]\d*", re.ASCII), "a whole number, 1 or more")
_FORMS = {
    "spark.driver.memory": _SIZE,
    "spark.executor.memory": _SIZE,
    "spark.executor.cores": _COUNT,
    "spark.cores.max": _COUNT,
    "spark.executor.instances": _COUNT,
    "spark.dynamicAllocation.maxExecutors": _COUNT,
}
# Set elsewhere.
_NOT_HERE = {
    "spark.master": "it is `engine`",
    "spark.pyspark.python": "it is `spark.python`",
    "spark.submit.deployMode": "the engine chooses it",
}


def spark_conf(value: object) -> object:
    """Validate Spark properties and convert them to strings; reports all problems at once."""
    if not isinstance(value, Mapping):
        return value
    conf = {str(key): _conf_text(given) for key, given in value.items()}
    if wrong := [problem for key, text in conf.items() if (problem := _problem(key, text))]:
        raise ValueError("; ".join(wrong))
    return conf


def _conf_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else ""


def _problem(key: str, text: str) -> str | None:
    if not _KEY.fullmatch(key):
        return f"`{key}` is no setting of Spark: they begin with `spark.`"
    if reason := _NOT_HERE.get(key):
        return f"`{key}` cannot be set here: {reason}"
    form, allowed = _FORMS.get(key, _SOME_TEXT)
    return None if form.fullmatch(text) else f"`{key}` is {text!r}; allowed: {allowed}"


# Each choice as in `lake.yaml` (for URIs: the prefix), and whether this release supports it.
CATALOGS: Mapping[str, bool] = {"local": True, "glue": True, "hive": True}
ON_EMR = frozenset({"emr", "emr-serverless"})
ENGINES: Mapping[str, bool] = {
    "local": True,
    "spark://": True,
    "emr": True,
    "emr-serverless": True,
    "databricks": False,
}
# Settings of later releases: reported as such, not as misspelled.
LATER_SETTINGS: frozenset[str] = frozenset()


_ZONE = "allowed: a time zone such as Europe/Berlin, or UTC"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_MASTER = r"[^\s/:,]+:\d{1,5}"
_SPARK_MASTER = re.compile(rf"spark://{_MASTER}(,{_MASTER})*", re.ASCII)  # with standby masters


def _unless(problem: Callable[[str], str | None]) -> AfterValidator:
    """Accepts a text of which nothing is wrong."""

    def validated(text: str) -> str:
        if reason := problem(text):
            raise ValueError(reason)
        return text

    return AfterValidator(validated)


def _wrong_engine(text: str) -> str | None:
    reason = refusal(ENGINES, "spark://" if _SPARK_MASTER.fullmatch(text) else text)
    return reason and reason.replace("spark://", "spark://host:port")


def _wrong_zone(text: str) -> str | None:
    return None if schedules.is_time_zone(text) else _ZONE


def _day(value: object) -> object:
    """Accept ISO dates only; pydantic would read `20261001` as seconds since 1970."""
    if not isinstance(value, str):
        return value
    try:
        return date.fromisoformat(value if _DAY.fullmatch(value) else "")
    except ValueError:
        raise ValueError("allowed: a day, YYYY-MM-DD") from None


def _text(allowed: str, pattern: str) -> object:
    return Field(pattern=pattern, description=allowed)


def _count(allowed: str, least: int = 1, most: int | None = None) -> object:
    return Field(ge=least, le=most, description=allowed)


WorkspaceId = Annotated[
    str, _text("allowed: letters, digits, `_` and `-`", r"^[A-Za-z0-9][A-Za-z0-9_-]*$")
]
SourceId = WorkspaceId
Slug = Annotated[
    str,
    _text(
        "allowed: letters, digits, `_`, `-` and `.`, a letter or digit first",
        r"^[A-Za-z0-9][A-Za-z0-9_.-]*$",
    ),
]
CatalogName = Annotated[
    str,
    Field(
        pattern=r"^[a-z][a-z0-9_]*$",
        max_length=128,
        description="allowed: a small letter, then small letters, digits and `_`, up to 128",
    ),
]
StoragePlace = Annotated[
    str,
    AfterValidator(storage_place),
    Field(
        min_length=1,
        description="allowed: a folder, s3://bucket[/prefix], abfss://container@account[/prefix]",
    ),
]
CatalogChoice = Annotated[
    str, _unless(partial(refusal, CATALOGS)), Field(description=f"allowed: {' | '.join(CATALOGS)}")
]
EngineChoice = Annotated[
    str, _unless(_wrong_engine), Field(description=f"allowed: {' | '.join(ENGINES)}")
]
SparkConf = Annotated[
    dict[str, str],
    BeforeValidator(spark_conf),
    Field(description="allowed: a mapping of Spark's own settings, as `spark.cores.max: 16`"),
]
Program = Annotated[
    str, _text("allowed: a program's name or absolute path, as python3.11", r"^[\w./+-]+$")
]
RawFolder = Annotated[
    str,
    AfterValidator(raw_place),
    Field(description="allowed: a folder below `storage`, an absolute one, s3://… or abfss://…"),
]
Day = Annotated[date, BeforeValidator(_day), Field(description="allowed: a day, YYYY-MM-DD")]
Region = Annotated[
    str, _text("allowed: an AWS region such as eu-west-1", r"^[a-z]{2,}(-[a-z]+)+-[0-9]+$")
]
EmrClusterId = Annotated[
    str, _text("allowed: `j-` and capitals or digits, as j-1A2B3C4D5E6F7", r"^j-[A-Z0-9]+$")
]
EmrServerlessApplicationId = Annotated[
    str, _text("allowed: small letters and digits, as 00f1a2b3c4d5e6f7", r"^[0-9a-z]{1,64}$")
]
GlueCatalogId = Annotated[str, _text("allowed: the 12 digits of the AWS account", r"^[0-9]{12}$")]
RoleArn = Annotated[
    str,
    _text(
        "allowed: arn:aws:iam::<account>:role/<name>", r"^arn:aws[a-z-]*:iam::[0-9]{12}:role/.+$"
    ),
]
ExternalId = Annotated[
    str,
    _text("allowed: up to 1224 letters, digits and +=,.@:/-_", r"^[A-Za-z0-9+=,.@:/_-]{1,1224}$"),
]
Days = Annotated[int, _count("allowed: a whole number of days from 1 to 3650", most=3650)]
Hours = Annotated[int, _count("allowed: a whole number of hours from 1 to 8760", most=8760)]
HoursFromZero = Annotated[
    int, _count("allowed: a whole number of hours from 0 to 8760", least=0, most=8760)
]
Schedule = Annotated[
    str,
    _unless(schedules.problem),
    Field(description=f"allowed: a cron expression such as `{schedules.TWELVE_A_DAY}`, or off"),
]
Owner = Annotated[
    str,
    _text(
        "allowed: team:<name> or an e-mail address",
        r"^(team:[A-Za-z0-9_-]+|[^@\s]+@[^@\s]+\.[^@\s]+)$",
    ),
]
TimeZone = Annotated[
    str,
    _unless(_wrong_zone),
    Field(description=_ZONE),
]
Minutes = Annotated[int, _count("allowed: a whole number of minutes from 1 to 1440", most=1440)]
Percent = Annotated[float, Field(ge=0, le=100, description="allowed: a number from 0 to 100")]
Count = Annotated[int, _count("allowed: a whole number, 1 or more", most=2**53)]
FileCount = Annotated[int, _count("allowed: a whole number of files, 2 or more", least=2)]
Megabytes = Annotated[int, _count("allowed: a whole number of megabytes, 1 or more")]
PastDays = Annotated[
    int, _count("allowed: a whole number of days from 0 to 3650", least=0, most=3650)
]
NameLength = Annotated[int, _count("allowed: a whole number from 32 to 1024", least=32, most=1024)]
# Python parsers fail at somewhat less than a thousand levels.
Depth = Annotated[int, _count("allowed: a whole number from 1 to 500", most=500)]


class SettingsGroup(BaseModel):
    """A group of settings; a setting without a value has its default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _leave_out_nulls(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        defaults = {key for key, field in cls.model_fields.items() if not field.is_required()}
        return {k: v for k, v in data.items() if v is not None or k not in defaults}
