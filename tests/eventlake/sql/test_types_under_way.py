"""A question asked while columns get other types waits until types and files agree."""

from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

import eventlake.sql.engine
from eventlake.catalog.base import CatalogTable
from eventlake.catalog.local import LocalCatalog
from eventlake.rules.errors import StateError
from eventlake.sql import LakeSql
from tests.support.lakes.small_lake import SmallLake


@dataclass(frozen=True)
class Switching(LocalCatalog):
    """A catalog that cannot change types and partitions at once, as Glue: it says so meanwhile."""

    looks: list[int] = field(default_factory=list)
    over_after: int = 3

    def table(self, database: str, name: str) -> CatalogTable | None:
        found = super().table(database, name)
        self.looks.append(len(self.looks))
        if found is None or len(self.looks) > self.over_after:
            return found
        return msgspec.structs.replace(found, retyped=-7)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallLake:
    monkeypatch.setattr(eventlake.sql.engine, "_WAITS", (0, 0, 0, 0, 0))
    small = SmallLake(tmp_path)
    small.table("shop", "orders")
    return small


def test_it_is_answered_when_the_switch_is_over(small: SmallLake) -> None:
    catalog = Switching(small.storage)
    assert len(LakeSql(catalog, small.storage).query("SELECT * FROM shop.orders")) == 0
    assert len(catalog.looks) > catalog.over_after


def test_one_that_does_not_end_is_told(small: SmallLake) -> None:
    sql = LakeSql(Switching(small.storage, over_after=99), small.storage)
    with pytest.raises(StateError, match=r"shop\.orders are just getting other types.*recover"):
        sql.query("SELECT * FROM shop.orders")
