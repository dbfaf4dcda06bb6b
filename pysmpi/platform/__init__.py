"""The machine that a program runs on: hosts, links, zones, routes, and where ranks are placed."""

from __future__ import annotations

from pysmpi.platform.loader import DEFAULT, load, shipped
from pysmpi.platform.model import Host, Link, Platform, Route

__all__ = ["DEFAULT", "Host", "Link", "Platform", "Route", "load", "shipped"]
