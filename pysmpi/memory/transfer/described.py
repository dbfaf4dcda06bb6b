"""Hosts whose inside is described, and the places of payloads in their memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pysmpi.platform.model import Host

# Returns the `buffers.Location` of a payload; None if it is in no buffer of the program.
Locate = Callable[[Any], Any]


def described(host: Host) -> bool:
    """Whether the description of a host's inside is sufficient for a memory model."""
    return host.node is not None and bool(host.node.curves)
