"""The machine that a program runs on: hosts, links, zones, routes, and the places of ranks."""

from __future__ import annotations

from pysmpi.platform.graph import from_graph
from pysmpi.platform.loader import DEFAULT, load, shipped
from pysmpi.platform.model import Host, Link, Platform, Route
from pysmpi.platform.topology import to_graph

__all__ = [
    "DEFAULT",
    "Host",
    "Link",
    "Platform",
    "Route",
    "from_graph",
    "load",
    "shipped",
    "to_graph",
]
