"""Places in the lake as Glue writes them: whole URIs."""

import re
from dataclasses import dataclass

_SCHEME = re.compile(r"\As3[an]?://")


@dataclass(frozen=True, slots=True)
class Root:
    """Where the lake lies: `s3://bucket[/prefix]`."""

    place: str

    def uri(self, path: str) -> str:
        """The URI of a folder, ending in a slash: else Athena takes it for a mere beginning."""
        return path if _SCHEME.match(path) else f"{self.place.rstrip('/')}/{path}/"

    def relative(self, uri: str) -> str | None:
        """The path of a folder below the root; None for one that is elsewhere."""
        plain = _SCHEME.sub("s3://", uri).rstrip("/")
        start = f"{self.place.rstrip('/')}/"
        return plain.removeprefix(start) if plain.startswith(start) else None
