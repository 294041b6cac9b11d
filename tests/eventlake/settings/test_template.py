"""The `lake.yaml` that `datalake init` writes: it works unchanged and shows every setting."""

import re
from pathlib import Path
from typing import Any

from eventlake.settings.alerts import Alerts
from eventlake.settings.file import load_settings, template
from eventlake.settings.models import Compaction, Limits, Retention, Settings, Source, Spark

STARTER = template()


def load(folder: Path, text: str) -> Settings:
    (folder / "lake.yaml").write_text(text)
    return load_settings(None, {}, folder)


def switched_on(text: str) -> str:
    return re.sub(r"(?m)^( *)#(?=\w)", r"\1", text)


def test_the_starter_can_be_used_as_it_is(tmp_path: Path) -> None:
    lake = load(tmp_path, STARTER)
    assert lake.storage_uri == f"{tmp_path}/data"
    assert [source.slug for source in lake.sources] == ["web"]


def test_every_setting_is_in_it_and_may_be_switched_on(tmp_path: Path) -> None:
    keys = set(re.findall(r"(?m)^[ -]*(\w+):", switched_on(STARTER)))
    fields = {
        name
        for model in (Settings, Source, Limits, Retention, Compaction, Spark, Alerts)
        for name in model.model_fields
    }
    assert keys == fields - {"config_folder"}
    assert load(tmp_path, switched_on(STARTER)).source("web").table_prefix == "web"


def test_what_is_switched_off_shows_the_default(tmp_path: Path) -> None:
    chosen: dict[str, Any] = dict.fromkeys(
        (
            *("table_prefix", "start", "freshness_hours", "region", "emr_cluster_id"),
            *("glue_catalog_id", "iam_role_arn"),
        ),
        True,
    )
    chosen["alerts"] = {
        *("email_to", "email_from", "smtp_port", "smtp_user", "sns_topic_arn", "webhook", "ui_url"),
        *("no_data_hours", "rejected_percent", "rescued_percent"),
    }
    usual, explicit = load(tmp_path, STARTER), load(tmp_path, switched_on(STARTER))
    assert explicit.sources[0].model_dump(exclude=chosen) == (
        usual.sources[0].model_dump(exclude=chosen)
    )


def test_every_setting_has_a_comment_above_it() -> None:
    lines = STARTER.splitlines()
    uncommented = [
        line
        for above, line in zip(["", *lines], lines, strict=False)
        if re.match(r" *#?[\w]+:", line) and not above.strip()
    ]
    assert uncommented == []
