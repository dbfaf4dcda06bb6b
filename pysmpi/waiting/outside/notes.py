"""The note about a wait that takes long."""

from __future__ import annotations

from typing import Any

from pysmpi import text
from pysmpi.python.frames import greenlet_site, shorten
from pysmpi.waiting.outside.peers import PeerSide


def describe(wait: Any, seconds: float) -> str:
    """One line about a real wait: the rank, its duration, its place in the program."""
    rank = wait.fiber.rank
    site = greenlet_site(wait.fiber)
    place = "" if site is None else f" at {shorten(site.file)}:{site.line}"
    whom = "another process" if wait.side is PeerSide.OUTSIDE else "a descriptor from outside"
    return (
        f"pysmpi: rank {rank.index} has waited for {whom}{place}, "
        f"and nothing else could happen for {text.seconds(round(seconds))}"
    )
