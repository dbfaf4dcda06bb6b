"""The inside of a computer as text, as data, and as keys of a file."""

from __future__ import annotations

from typing import Any

from pysmpi.platform.node_description import Curve, NodeDescription
from pysmpi.platform.units import format_bandwidth, format_size, format_time
from pysmpi.text import count


def node_keys(node: NodeDescription) -> dict[str, object]:
    """The keys of a description in a platform file: `node_yaml` reads back the same."""
    keys: dict[str, Any] = {"name": node.name}
    if node.description:
        keys["description"] = node.description
    if node.sources:
        keys["sources"] = list(node.sources)
    keys |= {"cores": node.cores, "sockets": node.sockets, "numa": node.numa}
    keys["protocol"] = node.protocol
    keys["line"] = format_size(node.line)
    keys["caches"] = [
        {"level": cache.level, "size": format_size(cache.size), "cores": cache.cores}
        | _bandwidth(cache.bandwidth)
        for cache in node.caches
    ]
    keys["distances"] = [
        {"name": distance.name, "cores": distance.cores} | _bandwidth(distance.bandwidth)
        for distance in node.distances
    ]
    if node.memory_bandwidth is not None:
        keys["memory"] = _bandwidth(node.memory_bandwidth)
    if node.curves:
        keys["curves"] = [
            _place(node, place)
            | {"points": {format_size(s): format_bandwidth(v) for s, v in _points(curve)}}
            for place, curve in node.curves.items()
        ]
    if node.overlap != Curve((1,), (1.0,)):
        keys["overlap"] = {format_size(s): v for s, v in _points(node.overlap)}
    if node.latencies:
        keys["latencies"] = [
            _place(node, place) | {"time": format_time(value)}
            for place, value in node.latencies.items()
        ]
    if node.contention is not None:
        base, slope = node.contention
        keys["contention"] = {"base": format_time(base), "slope": format_time(slope)}
    if node.streams:
        keys["streams"] = [
            {
                "state": state,
                "per_line": format_time(stream.per_line),
                "start": format_time(stream.start),
                "amortized": format_time(stream.amortized),
            }
            for state, stream in node.streams.items()
        ]
    if any(node.packing):
        inside, network = node.packing
        keys["packing"] = {"node": format_time(inside), "network": format_time(network)}
    return keys


def node_lines(node: NodeDescription) -> list[str]:
    """The text of a description for a reader, a line each."""
    lines = [
        f"node {node.name}: {count(node.cores, 'core')}, "
        f"{count(node.sockets, 'socket')}, {count(node.numa, 'NUMA node')}, "
        f"{node.protocol}, lines of {format_size(node.line)}"
    ]
    for cache in node.caches:
        shared = "of each core" if cache.cores == 1 else f"shared by {cache.cores} cores"
        size = format_size(cache.size)
        lines.append(f"  L{cache.level} {size} {shared}{_limit(cache.bandwidth)}")
    for distance in node.distances:
        groups = node.cores // distance.cores
        where = "all cores" if groups == 1 else f"{groups} groups of {distance.cores} cores"
        lines.append(f"  distance {distance.name}: {where}{_limit(distance.bandwidth)}")
    if node.memory_bandwidth is not None:
        lines.append(f"  memory{_limit(node.memory_bandwidth)} for each NUMA node")
    width = max((len(_label(node, place)) for place in (*node.curves, *node.latencies)), default=0)
    for place, curve in node.curves.items():
        points = ", ".join(f"{v / 1e9:.4g} at {format_size(s)}" for s, v in _points(curve))
        lines.append(f"  {_label(node, place).ljust(width)}  GB/s: {points}")
    for place, value in node.latencies.items():
        lines.append(f"  {_label(node, place).ljust(width)}  {value * 1e9:.4g} ns a line")
    return lines


def _label(node: NodeDescription, place: tuple[str, int]) -> str:
    access, distance = place
    return access if distance < 0 else f"{access} {node.distances[distance].name}"


def _place(node: NodeDescription, place: tuple[str, int]) -> dict[str, Any]:
    access, distance = place
    keys = {"access": access}
    if distance >= 0:
        keys["distance"] = node.distances[distance].name
    return keys


def _points(curve: Curve) -> list[tuple[int, float]]:
    return list(zip(curve.sizes, curve.values))


def _bandwidth(value: float | None) -> dict[str, str]:
    return {} if value is None else {"bandwidth": format_bandwidth(value)}


def _limit(value: float | None) -> str:
    return "" if value is None else f", {value / 1e9:.6g} GB/s"
