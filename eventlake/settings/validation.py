"""Rules between settings, on plain mappings, so that invalid files can be checked as well."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from eventlake.rules.names import snake
from eventlake.settings.places import misplaced

_KEPT_BY_SQL = frozenset({"information_schema", "main", "memory", "pg_catalog", "system", "temp"})

Loc = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Breach:
    """Two settings that contradict each other, reported at the second."""

    loc: Loc
    seen: str
    allowed: str

    @property
    def path(self) -> str:
        return path_of(self.loc)


def path_of(loc: Loc) -> str:
    """The path of a setting: `sources[1].date_partition`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in loc)
    return text.removeprefix(".")


def inherit(content: Mapping[str, Any], overridable: Collection[str]) -> dict[str, Any]:
    """The same settings with top-level values copied into sources that lack them."""
    top = {key: value for key, value in content.items() if key in overridable}
    if top.get("external_id") is None and isinstance(content.get("workspace_id"), str):
        top["external_id"] = content["workspace_id"]
    sources = [_inherited(top, s) if isinstance(s, Mapping) else s for s in content["sources"]]
    return {**content, **top, "sources": sources}


def _inherited(top: Mapping[str, Any], source: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**top, **source}
    for key, value in top.items():
        own = source.get(key)
        if own is None:
            merged[key] = value
        elif isinstance(value, Mapping) and isinstance(own, Mapping):
            merged[key] = {**value, **own}
    if merged.get("raw_role_arn") is not None and merged.get("raw_external_id") is None:
        merged["raw_external_id"] = merged.get("external_id")
    return merged


def breaches(content: Mapping[str, Any]) -> Iterator[Breach]:
    """All violated rules between settings."""
    listed = content.get("sources")
    sources = [
        (index, source)
        for index, source in enumerate(listed if isinstance(listed, list | tuple) else ())
        if isinstance(source, Mapping)
    ]
    yield from _catalog_breaches(content)
    yield from _hive_breaches(content, sources)
    yield from _account_breaches((), content)
    yield from _azure_breaches((), content)
    for index, source in sources:
        if source.keys() & {"glue_catalog_id", "iam_role_arn"}:
            yield from _account_breaches(("sources", index), {**content, **source})
        if isinstance(source.get("azure"), Mapping):
            own = _inherited({"azure": content.get("azure")}, source)
            yield from _azure_breaches(("sources", index), own)
    yield from _emr_breaches(content, sources)
    yield from _repeated_names(sources)
    yield from _shared_tables(sources)
    yield from _kept_databases(sources)
    yield from _raw_breaches(content, sources)


_NEEDED_ON_EMR = {
    "emr": {"emr_cluster_id": "that of a running cluster"},
    "emr-serverless": {
        "emr_serverless_application_id": "that of a Spark application",
        "execution_role_arn": "the role that its jobs have",
    },
}


def _emr_breaches(
    content: Mapping[str, Any], sources: list[tuple[int, Mapping[str, Any]]]
) -> Iterator[Breach]:
    """EMR needs the lake on S3, and to know where jobs run."""
    engine = content.get("engine")
    if not isinstance(engine, str) or engine not in _NEEDED_ON_EMR:
        return
    storage = content.get("storage")
    if isinstance(storage, str) and not storage.startswith("s3://"):
        yield Breach(
            ("engine",),
            f"{engine!r} cannot reach the lake in {storage!r}",
            "set `storage` to s3://bucket[/prefix], or `engine` to local",
        )
    for index, source in sources:
        if str(source.get("raw") or "").startswith(("/", "~")):
            seen = f"{engine!r} cannot reach the archive in {source['raw']!r}"
            yield Breach(("sources", index, "raw"), seen, "set it to s3://bucket[/prefix]")
    for setting, remedy in _NEEDED_ON_EMR[engine].items():
        for index, source in sources if content.get(setting) is None else ():
            if source.get(setting) is None:
                yield Breach(
                    ("sources", index, setting),
                    f"missing, and `engine` is {engine}",
                    f"set `{setting}` to {remedy}, here or at the top",
                )


def _repeated_names(sources: list[tuple[int, Mapping[str, Any]]]) -> Iterator[Breach]:
    """Ids and slugs identify sources in commands; slugs, as identifiers, also assets and jobs."""
    owner: dict[str, int] = {}
    for index, source in sources:
        names = [(key, source[key]) for key in ("id", "slug") if isinstance(source.get(key), str)]
        for key, name in names:
            for taken in {name, snake(name)} if key == "slug" else {name}:
                first = owner.setdefault(taken, index)
                if first != index:
                    yield Breach(
                        ("sources", index, key),
                        f"{name!r} is taken by sources[{first}]",
                        "ids and slugs are unique, also when written as names "
                        "(`my-site` and `my_site` are one name)",
                    )
                    break


def _shared_tables(sources: list[tuple[int, Mapping[str, Any]]]) -> Iterator[Breach]:
    owner: dict[tuple[str, str | None], tuple[int, str]] = {}
    for index, source in sources:
        slug = source.get("slug")
        if not isinstance(slug, str):
            continue
        database = source.get("database") or snake(slug)
        prefix = source.get("table_prefix")
        if not isinstance(database, str) or not isinstance(prefix, str | None):
            continue
        first, first_slug = owner.setdefault((database, prefix), (index, slug))
        if first != index and first_slug != slug:
            where = f"{database}.{prefix}_…" if prefix else f"{database}, without a prefix"
            yield Breach(
                ("sources", index, "table_prefix"),
                f"would write to the tables of source {first_slug!r} ({where})",
                f"set `table_prefix: {snake(slug)}` here, or another `database`",
            )


def _kept_databases(sources: list[tuple[int, Mapping[str, Any]]]) -> Iterator[Breach]:
    """Names by which SQL means something else: its own schemas and catalogs."""
    for index, source in sources:
        database, slug = source.get("database"), source.get("slug")
        name = database or (snake(slug) if isinstance(slug, str) else None)
        if name in _KEPT_BY_SQL:
            given = (
                f"{name!r}"
                if database and database != snake(str(slug))
                else (f"{name!r}, from the slug,")
            )
            yield Breach(
                ("sources", index, "database"),
                f"{given} has a meaning of its own in SQL",
                f"set `database: {name}_events`",
            )


def _raw_breaches(
    content: Mapping[str, Any], sources: list[tuple[int, Mapping[str, Any]]]
) -> Iterator[Breach]:
    for index, seen, remedy in misplaced(content, sources):
        yield Breach(("sources", index, "raw"), seen, remedy)


def _catalog_breaches(settings: Mapping[str, Any]) -> Iterator[Breach]:
    """Tables in Glue must be on S3."""
    storage = settings.get("storage")
    on_s3 = not isinstance(storage, str) or storage.startswith("s3://")
    if settings.get("catalog") == "glue" and not on_s3:
        yield Breach(
            ("catalog",),
            f"'glue' while `storage` is {storage!r}",
            "set `storage: s3://bucket[/prefix]` with it, or `catalog: local`",
        )


def _hive_breaches(
    content: Mapping[str, Any], sources: list[tuple[int, Mapping[str, Any]]]
) -> Iterator[Breach]:
    """The catalog `hive` needs a metastore, a sign-in by password a user."""
    on_hive = content.get("catalog") == "hive"
    if on_hive and not all(_get(source, content, "uri") for _, source in sources):
        seen = "'hive' while `hive.uri` is missing"
        yield Breach(("catalog",), seen, "set `uri: thrift://host:9083` under `hive`")
    for loc, given in [((), content), *((("sources", n), source) for n, source in sources)]:
        hive = given.get("hive")
        plain = isinstance(hive, Mapping) and hive.get("sasl") == "plain"
        if plain and not _get(given, content, "user"):
            yield Breach((*loc, "hive", "user"), "missing, and `sasl` is plain", "set `user`")


def _get(source: Mapping[str, Any], content: Mapping[str, Any], key: str) -> Any:
    """A setting of `hive`, of a source or else of all."""
    for given in (source.get("hive"), content.get("hive")):
        if isinstance(given, Mapping) and given.get(key) is not None:
            return given[key]
    return None


def _azure_breaches(at: Loc, settings: Mapping[str, Any]) -> Iterator[Breach]:
    """A service principal needs its ids, a secret in Key Vault the vault."""
    azure = settings.get("azure")
    if not isinstance(azure, Mapping):
        return
    sign_in, secret = azure.get("sign_in"), azure.get("secret")
    for key in ("tenant_id", "client_id") if sign_in == "service_principal" else ():
        if azure.get(key) is None:
            seen = "missing, and `sign_in` is service_principal"
            yield Breach((*at, "azure", key), seen, f"set `{key}` of its application")
    in_vault = isinstance(secret, str) and not secret.startswith("$")
    if in_vault and azure.get("key_vault") is None:
        yield Breach(
            (*at, "azure", "secret"),
            "the name of a secret in Key Vault, while `key_vault` is missing",
            "set `key_vault`, or `secret` to $NAME of an environment variable",
        )
    if azure.get("key_vault") is not None and not in_vault:
        yield Breach(
            (*at, "azure", "key_vault"),
            "given, while `secret` names no secret in it",
            "set `secret` to the name of the secret in the vault, or leave `key_vault` out",
        )


def _account_breaches(at: Loc, settings: Mapping[str, Any]) -> Iterator[Breach]:
    catalog_id, role = settings.get("glue_catalog_id"), settings.get("iam_role_arn")
    if not isinstance(catalog_id, str) or not isinstance(role, str):
        return
    account = role.split(":")[4] if role.count(":") >= 5 else None
    if account and account != catalog_id:
        yield Breach(
            (*at, "glue_catalog_id"),
            f"{catalog_id!r} is not the account of `iam_role_arn`",
            f"allowed: {account}, or leave it out",
        )
