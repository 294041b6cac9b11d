"""Where files lie: the forms of `storage` and `raw`, and archives that must lie apart."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eventlake.rules import paths

# Each choice as in `lake.yaml` (for URIs: the prefix), and whether this release supports it.
STORAGES: Mapping[str, bool] = {"a folder": True, "s3://": True, "abfss://": True}
REMOTE = ("s3://", "abfss://")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_HALF_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(:(?!//)|//)")
_VARIABLE = re.compile(r"\$|\{\{|%\w+%")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]|^\s|\s$")
_SYSTEM = re.compile(r"/(proc|sys|dev(?!/shm/))(/|$)")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", re.ASCII)
_IP = re.compile(r"\d+(\.\d+){3}", re.ASCII)
_AZURE = re.compile(
    r"abfss://(?=[^@]{3,63}@)(?P<container>[a-z0-9]+(-[a-z0-9]+)*)@(?P<account>[a-z0-9]{3,24})"
    r"(?P<domain>\.dfs(\.[a-z0-9-]+)+)?(?P<prefix>(/[^/]+)*)/?",
    re.ASCII,
)
_PUBLIC_DOMAIN = ".dfs.core.windows.net"


def refusal(choices: Mapping[str, bool], choice: str) -> str | None:
    """Why a choice is not allowed; None if it is."""
    if choices.get(choice):
        return None
    built = " | ".join(name for name, ready in choices.items() if ready)
    if choice in choices:
        return f"not in this release; allowed: {built}"
    if all(choices.values()):
        return f"allowed: {built}"
    return f"allowed: {' | '.join(choices)} (in this release: {built})"


@dataclass(frozen=True, slots=True)
class AzurePlace:
    """`abfss://container@account[.dfs.core.windows.net][/prefix]`."""

    container: str
    host: str  # of the account's DFS endpoint
    prefix: str

    @property
    def uri(self) -> str:
        """The URI as Hadoop, Spark and Databricks write it."""
        return f"abfss://{self.container}@{self.host}/{self.prefix}".rstrip("/")


def azure_place(uri: str) -> AzurePlace:
    """The parts of an `abfss://` URI."""
    found = _AZURE.fullmatch(uri)
    prefix = found["prefix"].lstrip("/") if found else ""
    if found is None or {".", ".."} & set(prefix.split("/")):
        raise ValueError(
            "allowed: abfss://container@account[/prefix], the container with 3 to 63 small "
            "letters, digits and single `-`, the account with 3 to 24 small letters and digits, "
            "or its host account.dfs.core.windows.net, the prefix without empty parts"
        )
    host = f"{found['account']}{found['domain'] or _PUBLIC_DOMAIN}"
    return AzurePlace(found["container"], host, prefix)


def storage_place(text: str) -> str:
    """A folder as written, or the URI of a bucket or container with a prefix."""
    return _checked(text)


def raw_place(text: str) -> str:
    """A folder relative to `storage`, an absolute one, or a bucket or container with a prefix."""
    place = _checked(text)
    if place.startswith(REMOTE):
        return _remote(place)
    if place.startswith(("/", "~")):
        return os.path.normpath(Path(place).expanduser())
    if ".." in place.split("/"):
        raise ValueError("allowed: a folder below `storage`, written relative to it")
    folder = "/".join(part for part in place.split("/") if part not in ("", "."))
    if not folder:
        raise ValueError("allowed: a folder below `storage`, not `storage` itself")
    return folder


def is_elsewhere(raw: str) -> bool:
    """Whether an archive lies outside `storage`."""
    return raw.startswith(("/", *REMOTE))


def _remote(uri: str) -> str:
    """The URI of a bucket or container in its one form."""
    return azure_place(uri).uri if uri.startswith("abfss://") else uri.rstrip("/")


def _checked(text: str) -> str:
    """The text, unless it looks like something else than a place or is no place for data."""
    if _UNPRINTABLE.search(text):
        raise ValueError("allowed: a path without control characters or spaces around it")
    if _VARIABLE.search(text):
        raise ValueError(
            "variables are not replaced here: write the path out, or begin it with `~/`"
        )
    if _HALF_SCHEME.match(text):
        raise ValueError("allowed: s3://bucket[/prefix] with `://`, or a folder")
    scheme = _SCHEME.match(text)
    if reason := refusal(STORAGES, scheme[0] if scheme else "a folder"):
        raise ValueError(reason)
    if not scheme:
        _require_folder(text)
    elif scheme[0] == "abfss://":
        azure_place(text)
    elif not _is_bucket(text.removeprefix("s3://")):
        raise ValueError(
            "allowed: s3://bucket[/prefix], the bucket with 3 to 63 small letters, digits, `.` and "
            "`-`, the prefix without empty parts"
        )
    return text


def _require_folder(text: str) -> None:
    full = os.path.expanduser(text)
    if full.startswith("~"):
        user = full[1:].partition("/")[0]
        raise ValueError(f"there is no user {user!r}: write the path out, or begin it with `~/`")
    whole = os.path.normpath(full)
    if whole.strip("/") == "" and full.startswith("/"):
        raise ValueError("allowed: a folder of its own, not the root of the disk")
    if _SYSTEM.match(whole):
        raise ValueError("allowed: a folder outside /proc, /sys and /dev")


def _is_bucket(uri: str) -> bool:
    """Whether this is a valid bucket name, optionally with a valid prefix."""
    bucket, _, prefix = uri.rstrip("/").partition("/")
    named = _BUCKET.fullmatch(bucket) and ".." not in bucket and not _IP.fullmatch(bucket)
    return bool(named) and not {"", ".", ".."} & set(prefix.split("/") if prefix else ())


def storage_root(storage: str, config_folder: Path) -> str:
    """The lake's root: an absolute folder or the URI without a slash at its end."""
    if "://" in storage:
        return _remote(storage)
    return os.path.abspath(config_folder / Path(storage).expanduser())


def misplaced(
    settings: Mapping[str, Any], sources: list[tuple[int, Mapping[str, Any]]]
) -> Iterator[tuple[int, str, str]]:
    """Archives that are not apart: the source, what is wrong, and what to do."""
    storage, folder = settings.get("storage"), settings.get("config_folder")
    try:
        root = _real(storage_root(storage_place(str(storage)), Path(folder or "")))
    except ValueError:
        return  # reported with `storage`
    archives: list[tuple[str, str, str]] = []
    for index, source in sources:
        named, slug = str(source.get("id")), str(source.get("slug"))
        try:
            raw = raw_place(str(source.get("raw") or paths.raw_root(named)))
        except ValueError:
            continue
        place = _real(raw if is_elsewhere(raw) else f"{root}/{raw}")
        if wrong := _in_the_lake(root, raw, place, f"{source.get('raw')!r}"):
            yield index, *wrong
        for other_id, other, taken in archives if not wrong else ():
            if other_id != named and (how := _overlap(place, taken)):
                more = " too" if place == taken else ""
                seen = f"{how} the archive of source {other!r}{more}"
                yield index, seen, "give each source a folder of its own"
                break
        archives.append((named, slug, place))


def _in_the_lake(root: str, raw: str, place: str, written: str) -> tuple[str, str] | None:
    remedy = f"set `raw` to the folder of the archive, by default {paths.raw_root('<id>')}"
    for ours in paths.OURS:
        if ours != "segment-logs" and _overlap(place, f"{root}/{ours}") in ("is", "lies in"):
            return f"{written} is a folder that the lake writes and cleans up", remedy
    if not is_elsewhere(raw):
        return None
    match _overlap(place, root):
        case "is":
            return f"{written} is `storage` itself", remedy
        case "holds":
            return f"{written} holds the whole lake", remedy
        case "lies in":
            relative = place.removeprefix(f"{root}/")
            return f"{written} lies below `storage`", f"write it relative to that: `{relative}`"
    return None


def _overlap(one: str, other: str) -> str | None:
    """How two places meet: the first is, lies in, or holds the second."""
    if one == other:
        return "is"
    if one.startswith(f"{other}/"):
        return "lies in"
    return "holds" if other.startswith(f"{one}/") else None


def _real(place: str) -> str:
    """The place, without links in it."""
    return place if "://" in place else os.path.realpath(place)
