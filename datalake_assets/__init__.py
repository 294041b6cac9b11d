"""The code location: assets, checks, schedules and the `datalake` command."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datalake_assets.component import EventLakeComponent as EventLakeComponent

__all__ = ["EventLakeComponent"]


def __getattr__(name: str) -> Any:
    """Import the component when Dagster asks for it: most commands do without Dagster."""
    if name != "EventLakeComponent":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from datalake_assets.component import EventLakeComponent

    return EventLakeComponent


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
