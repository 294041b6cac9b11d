"""What this release can do of what the settings may ask for: change it here when more is built."""

from collections.abc import Mapping

# Each choice as `lake.yaml` spells it (for places: how it begins), and whether it is built.
STORAGES: Mapping[str, bool] = {"a folder": True, "s3://": True, "abfss://": False}
CATALOGS: Mapping[str, bool] = {"local": True, "glue": True, "hive": False}
ENGINES: Mapping[str, bool] = {
    "local": True,
    "spark://": True,
    "emr": True,
    "emr-serverless": False,
    "databricks": False,
}
# Settings that will exist: they are refused kindly, not as misspelled.
LATER_SETTINGS = frozenset({"azure"})


def refusal(choices: Mapping[str, bool], choice: str) -> str | None:
    """Why a choice cannot be taken, or None if it can."""
    if choices.get(choice):
        return None
    built = " | ".join(name for name, ready in choices.items() if ready)
    if choice in choices:
        return f"not in this release; allowed: {built}"
    return f"allowed: {' | '.join(choices)} (in this release: {built})"
