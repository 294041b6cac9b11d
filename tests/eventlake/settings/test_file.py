"""The settings file: reading it, its errors, and its template."""

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from eventlake.rules.errors import SettingsError, UsageError
from eventlake.settings.alerts import Alerts
from eventlake.settings.azure import Azure
from eventlake.settings.file import load_settings, template
from eventlake.settings.hive import Hive
from eventlake.settings.models import Compaction, Limits, Retention, Settings, Source, Spark

GOOD = """\
workspace_id: P3IMS7SBDH
storage: ./lake
sources:
  - id: 9IP56Shn6
    slug: ios_prod
"""


EMPTY = "the file is empty; `datalake init` writes a commented example"


def load(folder: Path, text: str) -> Settings:
    (folder / "lake.yaml").write_text(text)
    return load_settings(None, {}, folder)


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(folder, text)
    for problem in caught.value.problems:
        assert str(problem) in str(caught.value)
    return [str(problem) for problem in caught.value.problems]


def test_the_file_is_found_by_option_then_variable_then_in_the_folder(tmp_path: Path) -> None:
    for name in ("a", "b", "lake"):
        (tmp_path / f"{name}.yaml").write_text(GOOD.replace("P3IMS7SBDH", name))
    env = {"DATALAKE_CONFIG": "b.yaml"}
    assert load_settings(Path("a.yaml"), env, tmp_path).workspace_id == "a"
    assert load_settings(None, env, tmp_path).workspace_id == "b"
    assert load_settings(None, {"DATALAKE_CONFIG": ""}, tmp_path).workspace_id == "lake"


def test_places_are_relative_to_the_file_and_not_to_the_caller(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "lake.yaml").write_text(GOOD)
    lake = load_settings(Path("etc/lake.yaml"), {}, tmp_path)
    assert lake.storage_uri == f"{tmp_path}/etc/lake"


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"(?s){tmp_path}/lake.yaml.*datalake init") as caught:
        load_settings(None, {}, tmp_path)
    assert caught.value.exit_code == 2
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        load_settings(tmp_path, {}, tmp_path)
    (tmp_path / "lake.yaml").write_bytes(GOOD.encode() + "# Größe".encode("latin-1"))
    with pytest.raises(SettingsError, match=r"lake\.yaml:6: bytes that are not UTF-8; save it as"):
        load_settings(None, {}, tmp_path)


def bomb(level: str) -> str:
    """Levels of aliases, each twice the one before: 2 to the power of 40 values."""
    lines = [f"n{i}: &n{i} {level.format(*[f'n{i - 1}'] * 2)}" for i in range(1, 40)]
    return "\n".join(["n0: &n0 {k: v}", *lines])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", f"lake.yaml:1: {EMPTY}"),
        ("# nothing\n", f"lake.yaml:1: {EMPTY}"),
        ("- a\n", "lake.yaml:1: a list instead of settings; "),
        ("hello", "lake.yaml:1: 'hello' instead of settings; "),
        ("a: 1\nb: [1, 2\nc: 3\n", "lake.yaml:3:2: expected ',' or ']'"),
        ("a: 1\n\tb: 2\n", "lake.yaml:2:1: found character '\\t'"),
        ("a: 1\n---\nb: 1\n", "lake.yaml:2:1: but found another document"),
        ("a: \x01", "lake.yaml: special characters are not allowed"),
        ("a: *b", "lake.yaml:1:4: found undefined alias"),
        ("a: 1\nb: 2\na: 3\n", "lake.yaml:3 a: written twice, first on line 1; keep one of them"),
        ("a: !env HOME", "lake.yaml:1 a: the tag '!env'; write the value without a tag"),
        ("a: &x [*x]", "lake.yaml:1 a[0]: an alias that contains itself"),
        (bomb("[*{}, *{}]"), "lake.yaml:1: aliases that make more than 100,000 values of it; "),
        (bomb("{{<<: [*{}, *{}]}}"), "lake.yaml:1: aliases that make more than 100,000 values"),
        ("a: " + "[" * 5000, "lake.yaml:1: values nested too deeply; write fewer levels"),
    ],
)
def test_broken_yaml_is_refused_by_line(tmp_path: Path, text: str, expected: str) -> None:
    [problem] = problems(tmp_path, text)
    assert problem.startswith(expected)


def test_all_wrong_settings_are_listed_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = """\
storage: gs://bucket
catalog: glu
engine: databricks
dedup_days: never
limits:
  depth: 0
  width: 3
sources:
  - id: 9IP56Shn6
    slug: ios_prod
    date_partition: hourly
    start: 20261001
  - id: a/b
    slug: 2fa
    database: Shop
    naming: snake
    raw: ../elsewhere
    enabled: perhaps
    skip_events: Ping
  - slug: web
  - nothing
"""
    layouts = "day/hour | year/month/day/hour | year/month/day | day"
    name = "allowed: a small letter, then small letters, digits and `_`, up to 128"
    listed = "allowed: a list of tables or event names"
    below = "allowed: a folder below `storage`, written relative to it"
    assert problems(tmp_path, text) == [
        "lake.yaml:1 workspace_id: missing; allowed: letters, digits, `_` and `-`",
        "lake.yaml:1 storage: seen 'gs://bucket'; allowed: a folder | s3:// | abfss://",
        "lake.yaml:2 catalog: seen 'glu'; allowed: local | glue | hive",
        "lake.yaml:3 engine: seen 'databricks'; not in this release; allowed: "
        "local | spark://host:port | emr | emr-serverless",
        "lake.yaml:4 dedup_days: seen 'never'; allowed: a whole number of days from 1 to 3650",
        "lake.yaml:6 limits.depth: seen '0'; allowed: a whole number from 1 to 500",
        "lake.yaml:7 limits.width: unknown setting; allowed: line_bytes, depth, rejected_lines, "
        "columns, tables, days, catalog_databases, catalog_tables, column_name",
        f"lake.yaml:11 sources[0].date_partition: seen 'hourly'; allowed: {layouts}",
        "lake.yaml:12 sources[0].start: seen '20261001'; allowed: a day, YYYY-MM-DD",
        "lake.yaml:13 sources[1].id: seen 'a/b'; allowed: letters, digits, `_` and `-`",
        f"lake.yaml:15 sources[1].database: seen 'Shop'; {name}",
        "lake.yaml:16 sources[1].naming: seen 'snake'; allowed: native | warehouse",
        f"lake.yaml:17 sources[1].raw: seen '../elsewhere'; {below}",
        "lake.yaml:18 sources[1].enabled: seen 'perhaps'; allowed: true | false",
        f"lake.yaml:19 sources[1].skip_events: seen 'Ping'; {listed}",
        "lake.yaml:20 sources[2].id: missing; allowed: letters, digits, `_` and `-`",
        "lake.yaml:21 sources[3]: seen 'nothing'; allowed: a mapping of settings",
    ]


def test_the_error_has_the_file_the_count_and_the_code(tmp_path: Path) -> None:
    begins = f"^{tmp_path}/lake.yaml cannot be used: 2 settings are wrong."
    with pytest.raises(SettingsError, match=begins) as caught:
        load(tmp_path, GOOD + "engine: spark\ncatalog: x\n")
    assert caught.value.exit_code == 2
    assert caught.value.error_code == "Segment.InvalidSettings"


def test_a_cluster_has_its_own_settings(tmp_path: Path) -> None:
    lake = load(
        tmp_path,
        f"{GOOD}engine: spark://one:7077,other:7077\n"
        "spark:\n  python: /opt/python3.11\n  conf:\n    spark.cores.max: 16\n"
        "    spark.speculation: true\n",
    )
    assert lake.spark.python == "/opt/python3.11"
    assert lake.spark.wait_minutes == 10
    assert lake.spark.conf == {"spark.cores.max": "16", "spark.speculation": "true"}


@pytest.mark.parametrize(
    ("conf", "expected"),
    [
        ("{cores: 2}", "`cores` is no setting of Spark: they begin with `spark.`"),
        ("{spark.master: local}", "`spark.master` cannot be set here: it is `engine`"),
        ("{spark.executor.memory: 2}", "is '2'; allowed: a size such as 2g"),
        ("{spark.executor.cores: 0}", "is '0'; allowed: a whole number, 1 or more"),
        ("{spark.x: [1]}", "`spark.x` is ''; allowed: text, a number, true or false"),
        ("spark.x", "allowed: a mapping of Spark's own settings"),
    ],
)
def test_a_wrong_setting_of_spark_has_its_line(tmp_path: Path, conf: str, expected: str) -> None:
    [problem] = problems(tmp_path, f"{GOOD}spark:\n  conf: {conf}\n")
    assert problem.startswith("lake.yaml:7 spark.conf: seen ")
    assert expected in problem


def test_schedules_are_set_at_the_top_or_in_a_source(tmp_path: Path) -> None:
    lake = load(tmp_path, f"schedule: off\n{GOOD}    schedule: 5 4 * * *\n")
    assert (lake.schedule, lake.sources[0].schedule) == ("off", "5 4 * * *")
    assert lake.sources[0].is_scheduled


BUCKET = (
    "allowed: s3://bucket[/prefix], the bucket with 3 to 63 small letters, digits, `.` and `-`, "
    "the prefix without empty parts"
)


WRITE_OUT = "write the path out, or begin it with `~/`"
KINDS = "allowed: a folder | s3:// | abfss://"
CONTAINER = "or its host account.dfs.core.windows.net, the prefix without empty parts"


@pytest.mark.parametrize(
    ("storage", "uri", "bucket"),
    [
        ("s3://bucket", "s3://bucket", "bucket"),
        ("s3://my.bucket-1/", "s3://my.bucket-1", "my.bucket-1"),
        ("s3://bucket/a/b=c/", "s3://bucket/a/b=c", "bucket"),
        ("abfss://lake@account", "abfss://lake@account.dfs.core.windows.net", "lake"),
        ("abfss://a-1@b2c/p/q=1/", "abfss://a-1@b2c.dfs.core.windows.net/p/q=1", "a-1"),
        (
            "abfss://lake@account.dfs.core.chinacloudapi.cn/p",
            "abfss://lake@account.dfs.core.chinacloudapi.cn/p",
            "lake",
        ),
    ],
)
def test_a_bucket_and_a_prefix_in_it(tmp_path: Path, storage: str, uri: str, bucket: str) -> None:
    read = load(tmp_path, GOOD.replace("./lake", storage))
    assert (read.storage_uri, read.bucket) == (uri, bucket)


@pytest.mark.parametrize(
    ("storage", "expected"),
    [
        ("abfss://c@a/p", CONTAINER),
        ("abfss://lake/p", CONTAINER),
        ("abfss://my--lake@account", CONTAINER),
        ("abfss://Lake@account", CONTAINER),
        ("abfss://lake@my-account", CONTAINER),
        ("abfss://lake@account.blob.core.windows.net", CONTAINER),
        ("abfss://lake@account//p", CONTAINER),
        ("abfss://lake@account/p/../q", CONTAINER),
        ("gs://bucket", KINDS),
        ("file:///lake", KINDS),
        ("s3://", BUCKET),
        ("s3://My-Bucket/lake", BUCKET),
        ("s3://my_bucket", BUCKET),
        ("s3://ab", BUCKET),
        ("s3://a..b/lake", BUCKET),
        ("s3://10.0.0.1/lake", BUCKET),
        ("s3://bucket//lake", BUCKET),
        ("s3://bucket/../lake", BUCKET),
        ("s3:/bucket", "allowed: s3://bucket[/prefix] with `://`, or a folder"),
        ("s3//bucket", "allowed: s3://bucket[/prefix] with `://`, or a folder"),
        ("S3:bucket", "allowed: s3://bucket[/prefix] with `://`, or a folder"),
        ("C:\\lake", "allowed: s3://bucket[/prefix] with `://`, or a folder"),
        ("$HOME/lake", f"variables are not replaced here: {WRITE_OUT}"),
        ("'{{ HOME }}/lake'", f"variables are not replaced here: {WRITE_OUT}"),
        ("~nobody-here/lake", f"there is no user 'nobody-here': {WRITE_OUT}"),
        ("/proc/lake", "allowed: a folder outside /proc, /sys and /dev"),
        ("/tmp/../dev", "allowed: a folder outside /proc, /sys and /dev"),
        ("/", "allowed: a folder of its own, not the root of the disk"),
        ("/tmp/..", "allowed: a folder of its own, not the root of the disk"),
        ("' ./lake'", "allowed: a path without control characters or spaces around it"),
        ('"./la\\nke"', "allowed: a path without control characters or spaces around it"),
        ('""', "allowed: a folder, s3://bucket[/prefix], abfss://container@account[/prefix]"),
        ("null", "allowed: a folder, s3://bucket[/prefix], abfss://container@account[/prefix]"),
    ],
)
def test_storage_is_a_folder_or_a_bucket(tmp_path: Path, storage: str, expected: str) -> None:
    [problem] = problems(tmp_path, GOOD.replace("./lake", storage))
    assert problem.startswith("lake.yaml:2 storage: seen ")
    assert problem.endswith(expected)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("regoin: eu-west-1", "regoin: unknown setting; did you mean 'region'?"),
        ("slug: x", "slug: unknown setting; it belongs in a source, not at the top of the file"),
        ("config_folder: /x", "config_folder: unknown setting; leave it out"),
        ("region: europe", "region: seen 'europe'; allowed: an AWS region such as eu-west-1"),
        ("emr_cluster_id: J-1", "emr_cluster_id: seen 'J-1'; allowed: `j-` and capitals or digits"),
        ("glue_catalog_id: 12345", "glue_catalog_id: seen '12345'; allowed: the 12 digits"),
        ("iam_role_arn: role", "iam_role_arn: seen 'role'; allowed: arn:aws:iam::<account>:role/"),
        ("tracking: none", "tracking: seen 'none'; allowed: rejected | all"),
        ("load_without_message_id: 7", "seen '7'; allowed: true | false"),
        ("dedup_days: 0", "dedup_days: seen '0'; allowed: a whole number of days from 1"),
        ("retention: 14", "retention: seen '14'; allowed: a mapping of days"),
        ("retention: {record_log_days: x}", "retention.record_log_days: seen 'x'; allowed: a whol"),
        ("sources: []", "written twice"),
        # Not in this release.
        ("emr_serverless_application_id: 00-1", "seen '00-1'; allowed: small letters and digits"),
        ("execution_role_arn: jobs", "seen 'jobs'; allowed: arn:aws:iam::<account>:role/"),
        ("catalog: hive", "catalog: 'hive' while `hive.uri` is missing; set `uri: thrift://host:9"),
        ("hive: {uri: host:9083}", "hive.uri: seen 'host:9083'; allowed: thrift://host[:port]"),
        (
            "hive: {password: secret}",
            "hive.password: seen a value that is not repeated here; all",
        ),
        ("hive: {sasl: plain}", "hive.user: missing, and `sasl` is plain; set `user`"),
        ("engine: databricks", "not in this release; allowed: local | spark://host:port | emr"),
        ("engine: spark://host", "allowed: local | spark://host:port | emr | "),
        # Azure.
        ("azure: on", "azure: seen 'on'; allowed: a mapping of how to sign in"),
        ("azure: {sign_in: me}", "azure.sign_in: seen 'me'; allowed: default | service_principal"),
        ("azure: {key_vault: v-1, secret: a b}", "azure.secret: seen a value that is not repeat"),
        (
            "azure: {secret: x}",
            "azure.secret: the name of a secret in Key Vault, while `key_vault` ",
        ),
        ("azure: {key_vault: v-1}", "azure.key_vault: given, while `secret` names no secret in it"),
        ("azure: {client_id: me}", "azure.client_id: seen 'me'; allowed: the id of an application"),
        (
            "    azure: {key_vault: v-1}",
            "azure.key_vault: given, while `secret` names no secret in",
        ),
        # Schedules and suppression.
        ("schedule: 0 25 * * *", "seen '0 25 * * *'; allowed: a cron expression of five fields"),
        ("schedule: hourly", "such as `0 */2 * * *`, or off; this has 1"),
        ("schedule_timezone: Berlin", "allowed: a time zone such as Europe/Berlin, or UTC"),
        ("first_sync_hours: -1", "allowed: a whole number of hours from 0 to 8760"),
        ("suppression: perhaps", "allowed: true | false"),
        # In a source.
        ("    storage: ./x", "unknown setting; it belongs at the top of the file, not in a source"),
        ("    datebase: x", "sources[0].datebase: unknown setting; did you mean 'database'?"),
        ("    start: 2026-02-30", "start: seen '2026-02-30'; allowed: a day, YYYY-MM-DD"),
        ("    start: 2026-10-01T00:00:00", "seen '2026-10-01T00:00:00'; allowed: a day, YYYY-MM-D"),
        ("    table_prefix: iOS", "sources[0].table_prefix: seen 'iOS'; allowed: a small letter"),
        ("    table_prefix: 1st", "sources[0].table_prefix: seen '1st'; allowed: a small letter"),
        ("    raw: .", "sources[0].raw: seen '.'; allowed: a folder below `storage`, not"),
        ("    raw: ../x", "raw: seen '../x'; allowed: a folder below `storage`, written relative "),
        ("    raw: s3:/b", "raw: seen 's3:/b'; allowed: s3://bucket[/prefix] with `://`"),
        ("    raw: s3//b", "raw: seen 's3//b'; allowed: s3://bucket[/prefix] with `://`"),
        ("    raw: gs://b", "raw: seen 'gs://b'; allowed: a folder | s3://"),
        ("    raw: $RAW/x", "raw: seen '$RAW/x'; variables are not replaced here"),
        ("    raw: /proc/x", "raw: seen '/proc/x'; allowed: a folder outside /proc"),
        ("    raw: segment-stage/S1", "raw: 'segment-stage/S1' is a folder that the lake writes a"),
        ("    raw: ./sync_tracking_datasets", "raw: './sync_tracking_datasets' is a folder that t"),
        ("    raw: logs/x", "raw: 'logs/x' is a folder that the lake writes and cleans up; set `r"),
        ("    database: pg_catalog", "database: 'pg_catalog' has a meaning of its own in SQL; set"),
        ("    database: main", "database: 'main' has a meaning of its own in SQL; set `database: "),
        ("    skip_events: [a, '']", "sources[0].skip_events[1]: seen ''; allowed: a list of tab"),
        ("    limits: {depth: 501}", "sources[0].limits.depth: seen '501'; allowed: a whole numb"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_line(tmp_path: Path, line: str, expected: str) -> None:
    [problem] = problems(tmp_path, f"{GOOD}{line}\n")
    assert problem.startswith("lake.yaml:6 sources[0]." if line[0] == " " else "lake.yaml:6 ")
    assert expected in problem


def test_a_slug_that_is_no_name_for_a_database_needs_one(tmp_path: Path) -> None:
    [problem] = problems(tmp_path, GOOD.replace("ios_prod", "2fa-app"))
    begins = "lake.yaml:4 sources[0].database: seen '2fa_app' (its default); allowed"
    assert problem.startswith(begins)
    assert load(tmp_path, GOOD.replace("ios_prod", "2fa-app\n    database: app")).sources


def test_a_slug_that_sql_keeps_for_itself_needs_a_database(tmp_path: Path) -> None:
    assert problems(tmp_path, GOOD.replace("ios_prod", "Temp")) == [
        "lake.yaml:4 sources[0].database: 'temp', from the slug, has a meaning of its own in SQL; "
        "set `database: temp_events`"
    ]
    assert load(tmp_path, GOOD.replace("ios_prod", "temp\n    database: temp_events")).sources


@pytest.mark.parametrize(
    ("first", "second", "seen"),
    [
        ("logs-a", "logs-a", "is the archive of source 'a' too"),
        ("archive", "archive/b", "lies in the archive of source 'a'"),
        ("/raw/a/b", "/raw/a/", "holds the archive of source 'a'"),
        ("s3://bucket/x", "s3://bucket/x/y/", "lies in the archive of source 'a'"),
        ("segment-logs", None, "lies in the archive of source 'a'"),
        ("null", "{folder}/lake/../lake/archive", "lies below `storage`"),
        ("null", "{folder}/lake", "is `storage` itself"),
        ("null", "{folder}", "holds the whole lake"),
        ("null", "{folder}/link", "is a folder that the lake writes and cleans up"),
        ("archive", "archives", None),
        ("null", "{folder}/raw", None),
        ("s3://bucket/x", "s3://bucket/xy", None),
    ],
)
def test_archives_are_apart_from_each_other_and_from_what_the_lake_writes(
    tmp_path: Path, first: str, second: str | None, seen: str | None
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "lake" / "segment-stage" / "x")
    raw = f"\n    raw: {second.format(folder=tmp_path)}" if second else ""
    text = f"""\
workspace_id: w
storage: ./lake
sources:
  - id: a
    slug: a
    raw: {first}
  - id: b
    slug: b{raw}
"""
    if seen is None:
        assert load(tmp_path, text).sources
        return
    [problem] = problems(tmp_path, text)
    assert problem.startswith("lake.yaml:") and "sources[1].raw: " in problem
    assert seen in problem


def test_sources_that_clash_are_listed_with_other_problems(tmp_path: Path) -> None:
    text = f"""{GOOD}    database: shop
  - id: web01
    slug: web
    database: shop
    naming: both
  - id: web01
    slug: other
"""
    assert problems(tmp_path, text) == [
        "lake.yaml:7 sources[1].table_prefix: would write to the tables of source 'ios_prod' "
        "(shop, without a prefix); set `table_prefix: web` here, or another `database`",
        "lake.yaml:10 sources[1].naming: seen 'both'; allowed: native | warehouse",
        "lake.yaml:11 sources[2].id: 'web01' is taken by sources[1]; ids and slugs are unique, "
        "also when written as names (`my-site` and `my_site` are one name)",
    ]


def test_a_file_without_sources_is_refused(tmp_path: Path) -> None:
    head = "workspace_id: w\nstorage: x\n"
    allowed = "allowed: a list of at least one source"
    assert problems(tmp_path, head) == [f"lake.yaml:1 sources: missing; {allowed}"]
    for written, seen in (("sources: []", "a list"), ("sources:\n  web", "'web'")):
        expected = [f"lake.yaml:3 sources: seen {seen}; {allowed}"]
        assert problems(tmp_path, f"{head}{written}\n") == expected


def test_values_stay_as_written_instead_of_as_yaml_guesses(tmp_path: Path) -> None:
    text = """\
workspace_id: 0123
storage: ./lake
iam_role_arn: arn:aws:iam::012345670123:role/lake
glue_catalog_id: 012345670123
sources:
  - id: 1e3
    slug: no
    start: 2026-10-01
    enabled: false
    skip_events: [2026-10-01, yes, null_event]
"""
    lake = load(tmp_path, text)
    [source] = lake.sources
    assert lake.workspace_id == "0123"
    assert source.glue_catalog_id == "012345670123"
    assert (source.id, source.slug, source.enabled) == ("1e3", "no", False)
    assert source.start == date(2026, 10, 1)
    assert source.skip_events == ("2026-10-01", "yes", "null_event")


def test_empty_settings_anchors_and_a_byte_order_mark_are_accepted(tmp_path: Path) -> None:
    lake = load(tmp_path, f"{GOOD}    naming:\n    table_prefix: null\nlimits:\nregion: ~\n")
    assert lake.sources[0].naming == "native"
    assert lake.limits.depth == 64
    first = "\n  - &first\n    id: a\n    slug: a\n    date_partition: day"
    second = "\n  - <<: *first\n    id: b\n    slug: b\n"
    lake = load(tmp_path, f"\ufeffworkspace_id: w\nstorage: x\nsources:{first}{second}")
    assert [source.date_partition for source in lake.sources] == ["day", "day"]
    assert lake.workspace_id == "w"


def test_a_service_principal_needs_its_ids(tmp_path: Path) -> None:
    azure = "azure:\n  sign_in: service_principal\n"
    assert problems(tmp_path, f"{GOOD}{azure}") == [
        f"lake.yaml:6 azure.{key}: missing, and `sign_in` is service_principal; set `{key}` of its "
        "application"
        for key in ("tenant_id", "client_id")
    ]
    ids = "  tenant_id: contoso.example\n  client_id: 0b7c1f7e-5c1a-4b9e-9f63-0123456789ab\n"
    own = "    azure: {secret: web, key_vault: vault-1}\n"
    [source] = load(tmp_path, f"{azure}{ids}{GOOD}{own}").sources
    assert (source.azure.tenant_id, source.azure.secret) == ("contoso.example", "web")


def test_a_metastore_may_have_several_servers(tmp_path: Path) -> None:
    uri = "thrift://one:9084,thrift://other"
    lake = load(tmp_path, f"{GOOD}catalog: hive\nhive: {{uri: '{uri}'}}\n")
    assert lake.hive.servers == [("one", 9084), ("other", 9083)]
    of_source = GOOD + "    hive: {uri: thrift://its-own}\ncatalog: hive\n"
    assert load(tmp_path, of_source).sources[0].hive.servers == [("its-own", 9083)]


ON_EMR = """\
workspace_id: WS
storage: {storage}
engine: emr
sources:
  - {{id: A, slug: a}}
  - {{id: B, slug: b, emr_cluster_id: j-2B}}
"""


def test_a_cluster_must_reach_the_lake_and_be_known(tmp_path: Path) -> None:
    assert problems(tmp_path, ON_EMR.format(storage="./lake")) == [
        "lake.yaml:3 engine: 'emr' cannot reach the lake in './lake'; set `storage` to "
        "s3://bucket[/prefix], or `engine` to local",
        "lake.yaml:5 sources[0].emr_cluster_id: missing, and `engine` is emr; set "
        "`emr_cluster_id` to that of a running cluster, here or at the top",
    ]
    settings = load(tmp_path, ON_EMR.format(storage="s3://bucket") + "emr_cluster_id: j-1A\n")
    assert [source.emr_cluster_id for source in settings.sources] == ["j-1A", "j-2B"]


def test_jobs_on_emr_serverless_need_an_application_and_a_role(tmp_path: Path) -> None:
    text = ON_EMR.format(storage="./lake").replace("engine: emr", "engine: emr-serverless")
    application = "emr_serverless_application_id: 00f1a2"
    only_a = f"  - {{id: A, slug: a, {application}}}\n"
    text = text.replace("  - {id: A, slug: a}\n", only_a).replace(
        "emr_cluster_id: j-2B", application
    )
    missing = "missing, and `engine` is emr-serverless; set `execution_role_arn` to the role that"
    assert problems(tmp_path, text) == [
        "lake.yaml:3 engine: 'emr-serverless' cannot reach the lake in './lake'; set `storage` to "
        "s3://bucket[/prefix], or `engine` to local",
        f"lake.yaml:5 sources[0].execution_role_arn: {missing} its jobs have, here or at the top",
        f"lake.yaml:6 sources[1].execution_role_arn: {missing} its jobs have, here or at the top",
    ]


STARTER = template()


def switched_on(text: str) -> str:
    return re.sub(r"(?m)^( *)#(?=\w)", r"\1", text)


def test_the_starter_can_be_used_as_it_is(tmp_path: Path) -> None:
    lake = load(tmp_path, STARTER)
    assert lake.storage_uri == f"{tmp_path}/data"
    assert [source.slug for source in lake.sources] == ["web"]


def test_every_setting_is_in_it_and_may_be_switched_on(tmp_path: Path) -> None:
    keys = set(re.findall(r"(?m)^[ -]*(\w+):", switched_on(STARTER)))
    models = (Settings, Source, Limits, Retention, Compaction, Spark, Alerts, Azure, Hive)
    fields = {name for model in models for name in model.model_fields}
    assert keys == fields - {"config_folder"}
    assert load(tmp_path, switched_on(STARTER)).source("web").table_prefix == "web"


def test_what_is_switched_off_shows_the_default(tmp_path: Path) -> None:
    chosen: dict[str, Any] = dict.fromkeys(
        (
            *("table_prefix", "start", "freshness_hours", "region", "emr_cluster_id"),
            *("emr_serverless_application_id", "execution_role_arn"),
            *("glue_catalog_id", "iam_role_arn", "raw_role_arn", "raw_external_id", "owners"),
        ),
        True,
    )
    chosen["alerts"] = {
        *("email_to", "email_from", "smtp_port", "smtp_user", "sns_topic_arn", "webhook"),
        *("ui_url", "console_url"),
        *("no_data_hours", "rejected_percent", "rescued_percent"),
    }
    chosen["hive"] = {"uri", "user"}
    chosen["azure"] = {"tenant_id", "client_id", "secret", "key_vault"}
    usual, explicit = load(tmp_path, STARTER), load(tmp_path, switched_on(STARTER))
    shown = usual.sources[0].model_dump(exclude=chosen)
    assert explicit.sources[0].model_dump(exclude=chosen) == shown


def test_every_setting_has_a_comment_above_it() -> None:
    lines = STARTER.splitlines()
    uncommented = [
        line
        for above, line in zip(["", *lines], lines, strict=False)
        if re.match(r" *#?[\w]+:", line) and not above.strip()
    ]
    assert uncommented == []
