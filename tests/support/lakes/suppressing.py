"""People put on the lists of a lake, as a test says it."""

from eventlake.rules.suppression import IdKind
from eventlake.state.suppression import WHOLE_LAKE, Entries, change
from eventlake.storage import Storage
from tests.support.lakes.runs import utc

NOW = utc("2026-10-20")


def suppress(
    storage: Storage, *users: str, visitors: tuple[str, ...] = (), source: str = WHOLE_LAKE
) -> None:
    """These people, and those on the lists already."""

    def added(entries: Entries) -> Entries:
        entries = entries.with_ids(users, IdKind.USER, source, NOW)
        return entries.with_ids(visitors, IdKind.ANONYMOUS, source, NOW)

    change(storage, added, NOW)


def suppress_only(storage: Storage, users: tuple[str, ...], visitors: tuple[str, ...] = ()) -> None:
    """These people, and nobody else."""

    def replaced(entries: Entries) -> Entries:
        for kind, ids in ((IdKind.USER, users), (IdKind.ANONYMOUS, visitors)):
            entries = entries.without_ids(entries.of(kind).to_pylist(), kind, WHOLE_LAKE)
            entries = entries.with_ids(ids, kind, WHOLE_LAKE, NOW)
        return entries

    change(storage, replaced, NOW)
