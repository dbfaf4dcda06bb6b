"""The output of `pysmpi platform check` and `pysmpi platform show`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from textwrap import fill
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.platform.definition import RailsDef
from pysmpi.platform.loader import load
from pysmpi.platform.model import Host, Platform
from pysmpi.platform.node_description import NodeDescription
from pysmpi.platform.node_show import node_keys, node_lines
from pysmpi.platform.rails import describe_rails
from pysmpi.platform.routing import resolve
from pysmpi.platform.zones import Zone
from pysmpi.text import count, seconds, size

# Up to this many hosts every pair is tried for a route; beyond, each host with a few others.
_EVERY_PAIR = 128
# Routes with more links than this, all together, are tried to and from the first host only.
_MOST_LINKS = 1_000_000


@dataclass(slots=True)
class Report:
    """The outcome of `check`: the platform and its contents, or its errors, one line each."""

    source: str
    summary: str = ""
    problems: list[str] = field(default_factory=list)
    platform: Platform | None = None

    @property
    def ok(self) -> bool:
        """Whether the platform can be used."""
        return not self.problems

    def __str__(self) -> str:
        return "\n".join(self.problems) if self.problems else self.summary


def check(path_or_name: str | os.PathLike[str]) -> Report:
    """Read a platform, and test whether its hosts reach each other. Never raises UsageError."""
    report = Report(os.fspath(path_or_name))
    try:
        platform = load(path_or_name)
    except UsageError as error:
        report.problems.append(str(error))
        return report
    report.platform = platform
    report.summary = f"{platform.source}: {summary(platform)}"
    unreachable = _unreachable(platform)
    if unreachable:
        others = f" and {len(unreachable) - 1} more" if len(unreachable) > 1 else ""
        report.problems.append(
            f"{platform.source}: expected a route between any two hosts, "
            f"got none from {unreachable[0]}{others}"
        )
    return report


def summary(platform: Platform) -> str:
    """One line: hosts, cores, speed, links, zones."""
    cores = sum(host.cores for host in platform.hosts)
    kinds = Counter(zone.kind for zone in _zones(platform.root))
    zones = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
    return (
        f"{platform.name}: {count(len(platform.hosts), 'host')}, {count(cores, 'core')} "
        f"of {_speeds(platform)}, {count(len(platform.links) - 1, 'link')}"
        + (f", zones {zones}" if zones else "")
    )


def describe(platform: Platform) -> dict[str, Any]:
    """A description of a platform, ready for JSON: units are bytes/s, seconds, flop/s."""
    first, last = platform.hosts[0], platform.hosts[-1]
    ways: dict[str, object] = {}
    for name, (src, dst) in {"itself": (first, first), "last": (first, last)}.items():
        try:
            route = platform.route(src, dst)
        except UsageError as error:
            ways[name] = {"from": src.name, "to": dst.name, "error": str(error)}
        else:
            ways[name] = {
                "from": src.name,
                "to": dst.name,
                "links": [link.name for link in route.links],
                "latency": route.latency,
                "bandwidth": min(link.bandwidth for link in route.links),
            }
    return {
        "name": platform.name,
        "source": platform.source,
        "description": platform.description,
        "sources": list(platform.sources),
        "hosts": len(platform.hosts),
        "first_host": first.name,
        "last_host": last.name,
        "cores": sum(host.cores for host in platform.hosts),
        "speeds": _known_speeds(platform),
        "links": len(platform.links) - 1,
        "zones": [
            {"name": zone.name, "kind": zone.kind, "members": len(zone.members)}
            for zone in _zones(platform.root)
        ],
        "nodes": [node_keys(node) for node in _nodes(platform)],
        "rails": [describe_rails(rails) for rails in _rails(platform)],
        "routes": ways,
        "preset": platform.preset,
        "config": dict(platform.config),
        "models": {name: dict(options) for name, options in platform.models.items()},
    }


def show(platform: Platform, columns: int = 80) -> str:
    """The text of `describe` for a reader, its sentences in lines of at most some columns."""
    facts = describe(platform)
    lines = [summary(platform), f"  from {facts['source']}"]
    if facts["description"]:
        lines += ["", fill(facts["description"], columns)]
    lines += [
        fill(f"source: {source}", columns, initial_indent="  ", subsequent_indent="    ")
        for source in facts["sources"]
    ]
    lines += ["", f"hosts {facts['first_host']} .. {facts['last_host']}"]
    lines += [
        f"zone {zone['name']}: {zone['kind']}, {count(zone['members'], 'member')}"
        for zone in facts["zones"]
    ]
    for node in _nodes(platform):
        lines += node_lines(node)
    lines += facts["rails"]
    for way in facts["routes"].values():
        lines.append(f"route {way['from']} -> {way['to']}:")
        if "error" in way:
            lines.append(f"  {way['error']}")
        else:
            lines.append(f"  {' '.join(way['links'])}")
            lines.append(f"  {seconds(way['latency'])}, {size(way['bandwidth'])}/s at most")
    lines.append(f"preset {facts['preset']}")
    lines += [f"option {key}: {value}" for key, value in facts["config"].items()]
    for model, options in facts["models"].items():
        lines += [f"option of model {model} {key}: {value}" for key, value in options.items()]
    return "\n".join(lines)


def _nodes(platform: Platform) -> list[NodeDescription]:
    """The descriptions of the hosts, each once."""
    found = {host.node.name: host.node for host in platform.hosts if host.node is not None}
    return list(found.values())


def _rails(platform: Platform) -> list[RailsDef]:
    """The rails of the hosts, those of a cluster once."""
    found = {
        id(host.rails.definition): host.rails.definition
        for host in platform.hosts
        if host.rails is not None
    }
    return list(found.values())


def _zones(zone: Zone) -> Iterator[Zone]:
    """The zones inside `zone` at any depth, each before its members."""
    for member in zone.members:
        if isinstance(member, Zone):
            yield member
            yield from _zones(member)


def _pairs(platform: Platform) -> Iterator[tuple[Host, Host]]:
    hosts = platform.hosts
    if len(hosts) <= _EVERY_PAIR:
        yield from ((a, b) for a in hosts for b in hosts)
        return
    half = len(hosts) // 2
    for i, host in enumerate(hosts):
        for other in (hosts[0], hosts[i - 1], hosts[(i + half) % len(hosts)], host):
            yield host, other
            yield other, host


def _unreachable(platform: Platform) -> list[str]:
    """The pairs of hosts without a route, of those that are tried."""
    found = []
    links = 0
    for src, dst in _pairs(platform):
        if src is dst:
            continue
        first = platform.hosts[0]
        if links > _MOST_LINKS and src is not first and dst is not first:
            continue
        route = resolve(src, dst)
        links += len(route or ())
        if not route:
            found.append(f"{src.name} to {dst.name}")
    return found


def _speeds(platform: Platform) -> str:
    speeds = _known_speeds(platform)
    if not speeds:
        return "this computer's speed"
    low, high = (f"{speed / 1e9:.6g}" for speed in (speeds[0], speeds[-1]))
    return f"{low} Gflop/s" if low == high else f"{low} to {high} Gflop/s"


def _known_speeds(platform: Platform) -> list[float]:
    """The speeds that the platform gives its hosts (flop/s), sorted."""
    return sorted({host.speed for host in platform.hosts if host.speed is not None})
