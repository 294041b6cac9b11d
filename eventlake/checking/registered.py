"""Partitions: what was published is registered, and nothing else; its files are there."""

from collections.abc import Iterator

from eventlake.catalog.base import CatalogPartition
from eventlake.checking.files import LookedInto
from eventlake.checking.rules import verdict
from eventlake.checking.view import Promise, TableView
from eventlake.runs.verify import CheckResult

_REMEDY = (
    "`datalake recover --catalog` registers again what was published. A file that is lost or "
    "damaged comes back by a replay of its day; `datalake audit` tells which rows are concerned."
)


def check_partitions(view: TableView) -> CheckResult:
    problems = [*_unregistered(view), *_unwanted(view), *_file_problems(view), *_row_problems(view)]
    files = [file for one in view.looked_into for file in one.files]
    evidence = {
        "partitions": len(view.partitions),
        "looked_into": len(view.looked_into),
        "all_looked_into_after_days": view.turns,
        "files_read": len(files),
        "rows_registered": sum(partition.rows for partition in view.partitions),
        "rows_published": view.rows,
    }
    return verdict(view.schema.key, "partitions", problems, evidence, _REMEDY)


def _unregistered(view: TableView) -> Iterator[str]:
    """Manifests that the catalog does not follow."""
    for values, promise in view.promises.items():
        found, name = view.registered.get(values), view.named(values)
        if found is None:
            # Of one that was dropped at some time the manifests not read may have the last word.
            if not promise.change.dropped and values not in view.dropped:
                yield f"{name} is not registered ({_said(promise)})"
        elif found.version < promise.manifest:
            yield f"{name} is registered as manifest {found.version} left it ({_said(promise)})"
        elif found.version == promise.manifest and _differs(found, promise):
            there = f"{found.location}, {found.files} files, {found.rows} rows"
            yield f"{name} is registered with {there} ({_said(promise)})"


def _differs(found: CatalogPartition, promise: Promise) -> bool:
    said = promise.change
    told = (found.location, found.files, found.rows, found.bytes)
    return said.dropped or told != (said.location, said.files, said.rows, said.bytes)


def _said(promise: Promise) -> str:
    change = promise.change
    what = (
        "dropped it"
        if change.dropped
        else f"put it into {change.location}, {change.files} files, {change.rows} rows"
    )
    return f"run {promise.run_id}, manifest {promise.manifest}, {what}"


def _unwanted(view: TableView) -> Iterator[str]:
    """Partitions that no manifest has put there."""
    for partition in view.partitions:
        name = view.named(partition.values)
        if not 0 < partition.version <= view.manifest:
            yield f"{name} was registered by somebody else"
        elif not _is_spelled_right(view, partition):
            yield f"{name} is not spelled like a partition of {view.layout.value}"
        elif not view.is_place_of_ours(partition.location):
            yield f"{name} lies in {partition.location}, which is no place of the table"


def _is_spelled_right(view: TableView, partition: CatalogPartition) -> bool:
    try:
        view.layout.parse(partition.values)
    except ValueError:
        return False
    return True


def _file_problems(view: TableView) -> Iterator[str]:
    for one in view.looked_into:
        for problem in file_problems(one):
            yield f"{view.named(one.partition.values)}: {problem}"


def file_problems(one: LookedInto) -> Iterator[str]:
    """Where the files of a partition are not those that were published."""
    partition, files = one.partition, one.files
    for file in files:
        if file.problem is not None:
            yield f"{file.name} cannot be read: {file.problem}"
    if len(files) != partition.files:
        yield f"{len(files)} files in its folder, {partition.files} published"
    elif (held := sum(file.bytes for file in files)) != partition.bytes:
        yield f"{held} bytes in its files, {partition.bytes} published"
    elif (rows := sum(file.rows for file in files)) != partition.rows and _all_read(one):
        yield f"{rows} rows in its files, {partition.rows} published"


def _all_read(one: LookedInto) -> bool:
    return all(file.problem is None for file in one.files)


def _row_problems(view: TableView) -> Iterator[str]:
    """What the sum over all partitions tells also of those that no manifest just read named."""
    registered = sum(partition.rows for partition in view.partitions)
    if registered != view.rows:
        yield f"the registered partitions have {registered} rows, {view.rows} were published"
