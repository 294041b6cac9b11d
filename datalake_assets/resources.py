"""The lake as a resource of Dagster, which tests and deployments may replace."""

from pathlib import Path

import dagster as dg
from pydantic import Field

from eventlake.lake import Lake
from eventlake.settings.file import load_settings
from spark_resources.engines.base import replaced


class LakeResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The lake of a `lake.yaml`. The other fields replace settings of the file."""

    config: str = Field(description="Path of lake.yaml.")
    storage: str | None = Field(
        default=None, description="Folder or s3://bucket/prefix of the lake."
    )
    catalog: str | None = Field(default=None, description="local or glue.")
    region: str | None = Field(default=None, description="AWS region of sources without their own.")

    def open(self) -> Lake:
        """The lake, without reading or writing in it."""
        settings = load_settings(Path(self.config), {}, Path.cwd())
        fields = {"storage": self.storage, "catalog": self.catalog, "region": self.region}
        given = {name: value for name, value in fields.items() if value is not None}
        return Lake.open(settings.model_validate(replaced(settings.model_dump(), given)))
