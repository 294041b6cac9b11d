"""The settings of a lake and their defaults: `lake.yaml` as values, complete and validated."""

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, PrivateAttr, model_validator

from eventlake.rules import paths, schedules
from eventlake.rules.errors import UnknownSource
from eventlake.rules.names import NAME_LENGTH, Naming, catalog_table, snake, table_name
from eventlake.rules.partitions import DatePartition
from eventlake.settings import fields
from eventlake.settings.alerts import Alerts
from eventlake.settings.azure import Azure
from eventlake.settings.hive import Hive
from eventlake.settings.places import azure_place, storage_root
from eventlake.settings.validation import breaches, inherit

_NATIVE_TABLES = frozenset({"identify", "page", "screen", "group", "alias"})
_WAREHOUSE_TABLES = frozenset(table_name(kind, naming=Naming.WAREHOUSE) for kind in _NATIVE_TABLES)


class Tracking(StrEnum):
    """The records whose payload the record log keeps."""

    REJECTED = "rejected"
    ALL = "all"


class SyncTrigger(StrEnum):
    """What starts syncs besides people."""

    SCHEDULE = "schedule"
    ON_ARRIVAL = "on_arrival"


class FreshnessOf(StrEnum):
    """The assets that have to be materialized as often as the schedule says."""

    SYNC = "sync"
    TABLES = "tables"
    OFF = "off"


class Limits(fields.SettingsGroup):
    """Limits; beyond one, only the line, column or table concerned is rejected."""

    line_bytes: fields.Count = 1024 * 1024
    depth: fields.Depth = 64
    rejected_lines: fields.Count = 1_000_000
    columns: fields.Count = 2_000
    tables: fields.Count = 1_000
    days: fields.Count = 4_000
    catalog_databases: fields.Count = 10_000
    catalog_tables: fields.Count = 200_000
    column_name: fields.NameLength = NAME_LENGTH


class Retention(fields.SettingsGroup):
    """How long files that are not table data are kept."""

    record_log_days: fields.Days = 14
    stage_days: fields.Days = 14
    replaced_hours: fields.Hours = 24
    index_days: fields.Days = 30
    orphan_days: fields.Days = 7
    dagster_days: fields.Days = 90


class Compaction(fields.SettingsGroup):
    """Which partitions of past days are compacted."""

    enabled: Annotated[bool, Field(description="allowed: true | false")] = True
    min_files: fields.FileCount = 3
    below_mb: fields.Megabytes = 64
    after_days: fields.PastDays = 1
    run_mb: fields.Megabytes = 10_000


class Spark(fields.SettingsGroup):
    """Settings of clusters; EMR uses `conf` alone."""

    python: fields.Program | None = None  # of the workers; default: the version of this Python
    wait_minutes: fields.Minutes = 10
    conf: fields.SparkConf = Field(default_factory=dict)


class Overridable(fields.SettingsGroup):
    """Top-level settings that a source can override."""

    region: fields.Region | None = None
    emr_cluster_id: fields.EmrClusterId | None = None
    emr_serverless_application_id: fields.EmrServerlessApplicationId | None = None
    execution_role_arn: fields.RoleArn | None = None  # of jobs on EMR Serverless
    glue_catalog_id: fields.GlueCatalogId | None = None
    iam_role_arn: fields.RoleArn | None = None
    external_id: fields.ExternalId | None = None
    azure: Annotated[Azure, Field(description="allowed: a mapping of how to sign in")] = Azure()
    hive: Annotated[Hive, Field(description="allowed: a mapping of how to connect")] = Hive()
    dedup_days: fields.Days = 7
    freshness_hours: fields.Hours | None = None
    load_without_message_id: Annotated[bool, Field(description="allowed: true | false")] = False
    fail_above_rejected_percent: fields.Percent = 50
    tracking: Annotated[Tracking, Field(description="allowed: rejected | all")] = Tracking.REJECTED
    suppression: Annotated[bool, Field(description="allowed: true | false")] = True
    schedule: fields.Schedule = schedules.TWELVE_A_DAY
    schedule_timezone: fields.TimeZone = "UTC"
    sync: Annotated[SyncTrigger, Field(description="allowed: schedule | on_arrival")] = (
        SyncTrigger.SCHEDULE
    )
    first_sync_hours: fields.HoursFromZero = 2
    freshness_policy: Annotated[FreshnessOf, Field(description="allowed: sync | tables | off")] = (
        FreshnessOf.SYNC
    )
    owners: Annotated[
        tuple[fields.Owner, ...], Field(description="allowed: a list of team:<name> or e-mails")
    ] = ()
    unit_bytes: fields.Count = 1_000_000_000
    limits: Annotated[Limits, Field(description="allowed: a mapping of limits")] = Limits()
    retention: Annotated[Retention, Field(description="allowed: a mapping of days and hours")] = (
        Retention()
    )
    compaction: Annotated[
        Compaction, Field(description="allowed: a mapping of counts, sizes and days")
    ] = Compaction()
    alerts: Annotated[
        Alerts, Field(description="allowed: a mapping of recipients and switches")
    ] = Alerts()
    _workspace_id: str | None = PrivateAttr(None)

    @property
    def external_id_is_set(self) -> bool:
        """Whether the external id is set; the default is the workspace id."""
        return self.external_id != self._workspace_id


class Source(Overridable):
    """One event source; inherits top-level settings."""

    id: fields.SourceId
    slug: fields.Slug
    raw: fields.RawFolder = ""  # default: from the id
    raw_role_arn: fields.RoleArn | None = None  # of an archive in another bucket
    raw_external_id: fields.ExternalId | None = None
    enabled: Annotated[bool, Field(description="allowed: true | false")] = True
    database: fields.CatalogName = ""  # default: from the slug
    table_prefix: fields.CatalogName | None = None
    date_partition: Annotated[
        DatePartition, Field(description=f"allowed: {' | '.join(DatePartition)}")
    ] = DatePartition.DAY_HOUR
    naming: Annotated[Naming, Field(description=f"allowed: {' | '.join(Naming)}")] = Naming.NATIVE
    skip_events: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...],
        Field(description="allowed: a list of tables or event names"),
    ] = ()
    start: fields.Day | None = None
    _staggered: bool = PrivateAttr(False)

    @model_validator(mode="before")
    @classmethod
    def _defaults_from_id_and_slug(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        filled = dict(data)
        if filled.get("raw") is None and isinstance(filled.get("id"), str):
            filled["raw"] = paths.raw_root(filled["id"])
        if filled.get("database") is None and isinstance(filled.get("slug"), str):
            filled["database"] = snake(filled["slug"])
        return filled

    @property
    def name(self) -> str:
        """The slug as an identifier: lowercase letters, digits and `_`."""
        return snake(self.slug)

    @property
    def due(self) -> str:
        """When it is synced: its schedule, on EMR at a minute of its own."""
        return schedules.staggered(self.schedule, self.id) if self._staggered else self.schedule

    @property
    def is_scheduled(self) -> bool:
        """Whether it is synced by schedule."""
        return self.enabled and self.schedule != schedules.OFF

    def catalog_table(self, table: str) -> str:
        """The name of a table of this source in the catalog."""
        return catalog_table(table, self.table_prefix)

    def own_table(self, name: str) -> str:
        """A table by its name in the catalog, `database.table`; other names are as they are."""
        database, _, table = name.rpartition(".")
        if database != self.database:
            return name
        return table.removeprefix(f"{self.table_prefix}_") if self.table_prefix else table

    def skips(self, table: str) -> bool:
        """Whether a table (without prefix) is skipped."""
        return table in self.skipped_tables

    @cached_property
    def skipped_tables(self) -> frozenset[str]:
        return frozenset(map(self._skipped_table, self.skip_events))

    def _skipped_table(self, entry: str) -> str:
        """The table of an entry: a table name or the name of a track event."""
        types = _NATIVE_TABLES if self.naming is Naming.NATIVE else _WAREHOUSE_TABLES
        if entry in types or (entry.startswith("track_") and entry == snake(entry)):
            return entry
        return table_name("track", entry, self.naming)


class Settings(Overridable):
    """The content of `lake.yaml`; where both have a value, use the source's."""

    workspace_id: fields.WorkspaceId
    storage: fields.StoragePlace
    catalog: fields.CatalogChoice = "local"
    engine: fields.EngineChoice = "local"
    spark: Annotated[Spark, Field(description="allowed: python, wait_minutes, conf")] = Spark()
    stagger: Annotated[bool, Field(description="allowed: true | false")] = True
    private_files: Annotated[bool, Field(description="allowed: true | false")] = True
    sources: Annotated[
        tuple[Source, ...],
        Field(min_length=1, description="allowed: a list of at least one source"),
    ]
    # Set when the file is read: relative paths start from its folder.
    config_folder: Path = Path()

    @model_validator(mode="before")
    @classmethod
    def _hand_down(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or not isinstance(data.get("sources"), list | tuple):
            return data
        given = [
            source.model_dump(exclude_unset=True) if isinstance(source, Source) else source
            for source in data["sources"]
        ]
        return inherit({**data, "sources": given}, OVERRIDABLE)

    @model_validator(mode="after")
    def _check_between_fields(self) -> Self:
        if found := list(breaches(self.model_dump())):
            raise ValueError("; ".join(f"{b.path}: {b.seen}; {b.allowed}" for b in found))
        parts: list[Overridable] = [self, *self.sources]
        for part in parts:
            part._workspace_id = self.workspace_id
        for source in self.sources:
            source._staggered = self.stagger and self.on_emr
        return self

    @property
    def storage_uri(self) -> str:
        """The lake's root: an absolute folder or the URI as written."""
        return storage_root(self.storage, self.config_folder)

    @property
    def bucket(self) -> str:
        """The bucket or container of the lake, else its folder."""
        scheme, _, place = self.storage_uri.partition("://")
        if scheme == "abfss":
            return azure_place(self.storage_uri).container
        return place.split("/")[0] if place else self.storage_uri

    @property
    def on_emr(self) -> bool:
        """Whether jobs run on EMR, with a role of their own."""
        return self.engine in fields.ON_EMR

    def for_jobs(self) -> dict[str, Any]:
        """The settings for jobs on other machines: without alerts, which may contain a secret."""
        left_out: dict[str, Any] = {"alerts": True, "sources": {"__all__": {"alerts"}}}
        return self.model_dump(mode="json", exclude=left_out)

    def source(self, slug_or_id: str) -> Source:
        """The source with this slug or id."""
        for source in self.sources:
            if slug_or_id in (source.slug, source.id):
                return source
        raise UnknownSource(slug_or_id, [source.slug for source in self.sources])


OVERRIDABLE = frozenset(Overridable.model_fields)
