"""Where dictionaries hold some objects; `dictionary_search.c` says why it is in C."""

from pysmpi.python.holders import Entry

def find(
    spaces: list[dict[str, object]], objects: list[object], kind: type | None = None, /
) -> list[Entry]:
    """As `holders.find`."""

def same(now: dict[str, object] | type, before: dict[str, object], /) -> bool:
    """As `holders.same`."""
