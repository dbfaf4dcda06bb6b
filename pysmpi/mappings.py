"""The names of the orders in which ranks fill a machine."""

from __future__ import annotations

import re

MAPPINGS = ("core", "socket", "node")
EXPECTED = (*MAPPINGS, "ppr:N:node")

_PER_NODE = r"ppr:([1-9][0-9]{0,8}):node"


def ranks_per_node(map_by: str) -> int | None:
    """N of ``ppr:N:node``, as Open MPI writes N processes per node; None for other text."""
    match = re.fullmatch(_PER_NODE, map_by)
    return None if match is None else int(match[1])


def is_mapping(text: object) -> bool:
    """Whether a text is the name of an order."""
    return isinstance(text, str) and (text in MAPPINGS or ranks_per_node(text) is not None)
