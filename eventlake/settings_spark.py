"""What may be said of Spark itself in the settings, and what may not."""

import re
from collections.abc import Mapping

_KEY = re.compile(r"spark\.[A-Za-z0-9_.-]+", re.ASCII)
_SOME_TEXT = (re.compile(r"(?s).+"), "text, a number, true or false")
_SIZE = (re.compile(r"[1-9]\d*[kmgt]b?", re.ASCII | re.IGNORECASE), "a size such as 2g")
_COUNT = (re.compile(r"[1-9]\d*", re.ASCII), "a whole number, 1 or more")
_FORMS = {
    "spark.driver.memory": _SIZE,
    "spark.executor.memory": _SIZE,
    "spark.executor.cores": _COUNT,
    "spark.cores.max": _COUNT,
}
# The data flow rests on these, or another setting is the place for them.
_NOT_HERE = {
    "spark.master": "it is `engine`",
    "spark.pyspark.python": "it is `spark.python`",
    "spark.submit.deployMode": "the driver always runs with Dagster",
    "spark.sql.session.timeZone": "it is always UTC",
    "spark.sql.adaptive.enabled": "it is always off",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "rows are batches, of which few go at once",
}


def spark_conf(value: object) -> object:
    """Spark's settings, as text; what is wrong with them is told all at once."""
    if not isinstance(value, Mapping):
        return value
    conf = {str(key): _text(given) for key, given in value.items()}
    if wrong := [problem for key, text in conf.items() if (problem := _problem(key, text))]:
        raise ValueError("; ".join(wrong))
    return conf


def _text(value: object) -> str:
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
