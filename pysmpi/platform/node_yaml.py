"""The `nodes` of a platform file: descriptions of computers. See docs/reference/platform.md."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TypeVar

from pysmpi.errors import UsageError
from pysmpi.platform.default import MACHINES
from pysmpi.platform.node_description import (
    ACCESSES,
    NEEDED,
    Curve,
    Distance,
    LevelCaches,
    NodeDescription,
    Stream,
)
from pysmpi.platform.nodes import Node, compose
from pysmpi.platform.numbers import read_count
from pysmpi.platform.units import parse_bandwidth, parse_size, parse_time
from pysmpi.text import did_you_mean, real

_T = TypeVar("_T")

MOST_LEVELS, MOST_DISTANCES = 7, 14

_REQUIRED = ("name", "cores", "caches", "distances")
_OPTIONAL = (
    "description", "sources", "sockets", "numa", "protocol", "line", "memory", "curves",
    "overlap", "latencies", "contention", "streams", "packing",
)  # fmt: skip
PROTOCOLS = ("MESI", "MESIF", "MOESI", "GOLS", "FAME-A", "FAME-B")


def read_nodes(node: Node) -> dict[str, NodeDescription]:
    """The descriptions in a list, by name. Raises UsageError."""
    found: dict[str, NodeDescription] = {}
    for item in node.items():
        described = read_node(item)
        if described.name in found:
            raise item.error(f'expected a name that is not taken, got "{described.name}" again')
        found[described.name] = described
    return found


def read_node(node: Node) -> NodeDescription:
    """One description. Raises UsageError."""
    keys = node.fields(_REQUIRED, _OPTIONAL)
    cores = keys["cores"].parse(read_count)
    sockets = _divisor(keys, "sockets", cores, 1)
    distances = _read_distances(keys["distances"], cores)
    return NodeDescription(
        keys["name"].text(),
        cores,
        sockets,
        _divisor(keys, "numa", cores, sockets),
        _read_caches(keys["caches"], cores),
        distances,
        keys["protocol"].choice(PROTOCOLS) if "protocol" in keys else "MESI",
        _positive(keys["line"], parse_size, "a size") if "line" in keys else 64,
        _read_memory(keys),
        _read_curves(keys["curves"], distances) if "curves" in keys else {},
        _read_latencies(keys["latencies"], distances) if "latencies" in keys else {},
        _read_points(keys["overlap"], _read_part) if "overlap" in keys else Curve((1,), (1.0,)),
        _read_contention(keys["contention"]) if "contention" in keys else None,
        _read_streams(keys["streams"]) if "streams" in keys else {},
        _read_packing(keys["packing"]) if "packing" in keys else (0.0, 0.0),
        keys["description"].text().strip() if "description" in keys else "",
        tuple(item.text() for item in keys["sources"].items()) if "sources" in keys else (),
        node.where,
    )


def _divisor(keys: Mapping[str, Node], key: str, cores: int, otherwise: int) -> int:
    """The number of equal parts of the cores."""
    if key not in keys:
        return otherwise
    count = keys[key].parse(read_count)
    if cores % count:
        raise keys[key].error(f"expected a number that divides {cores} cores, got {count}")
    return count


def _sharers(keys: Mapping[str, Node], cores: int, before: int) -> int:
    """The size of a group of neighbouring cores; a multiple of `before`."""
    count = keys["cores"].parse(read_count)
    if cores % count:
        raise keys["cores"].error(f"expected a number that divides {cores} cores, got {count}")
    if count % before:
        raise keys["cores"].error(
            f"expected a multiple of the {before} cores of the line before, got {count}"
        )
    return count


def _read_caches(node: Node, cores: int) -> tuple[LevelCaches, ...]:
    caches: list[LevelCaches] = []
    before = 1
    for item in node.items():
        keys = item.fields(("level", "size"), ("cores", "bandwidth"))
        level = keys["level"].parse(read_count)
        if level > MOST_LEVELS:
            raise keys["level"].error(f"expected at most {MOST_LEVELS} levels, got {level}")
        if level != len(caches) + 1:
            raise keys["level"].error(f"expected level {len(caches) + 1}, got {level}")
        size = _positive(keys["size"], parse_size, "a size")
        if "cores" in keys:
            before = _sharers(keys, cores, before)
        caches.append(LevelCaches(level, size, before, _bandwidth(keys)))
    if not caches:
        raise node.error("expected at least one cache, got an empty list")
    return tuple(caches)


def _read_distances(node: Node, cores: int) -> tuple[Distance, ...]:
    distances: list[Distance] = []
    before = 1
    for item in node.items():
        keys = item.fields(("name", "cores"), ("bandwidth",))
        name = keys["name"].text()
        if name in [distance.name for distance in distances]:
            raise keys["name"].error(f'expected a name that is not taken, got "{name}" again')
        before = _sharers(keys, cores, before)
        distances.append(Distance(name, before, _bandwidth(keys)))
    if len(distances) > MOST_DISTANCES:
        raise node.error(f"expected at most {MOST_DISTANCES} distances, got {len(distances)}")
    if before != cores or not distances:
        raise node.error(f"expected the last distance to join all {cores} cores, got {before}")
    return tuple(distances)


def _read_memory(keys: Mapping[str, Node]) -> float | None:
    if "memory" not in keys:
        return None
    return _bandwidth(keys["memory"].fields(("bandwidth",)))


def _bandwidth(keys: Mapping[str, Node]) -> float | None:
    if "bandwidth" not in keys:
        return None
    return _positive(keys["bandwidth"], parse_bandwidth, "a bandwidth")


def _positive(node: Node, reader: Callable[[str], _T], what: str) -> _T:
    value = node.parse(reader)
    if value == 0:
        raise node.error(f'expected {what} above 0, got "{node.text()}"')
    return value


def _read_place(
    keys: Mapping[str, Node],
    distances: tuple[Distance, ...],
    seen: Mapping[tuple[str, int], object],
) -> tuple[str, int]:
    """The access and distance of an entry."""
    access = keys["access"].choice(ACCESSES)
    number = -1
    if "distance" in keys:
        if access[1] == "H" and access not in ("SHS", "SHO", "SHF"):
            raise keys["distance"].error(f"expected none, since {access} concerns no other core")
        number = [d.name for d in distances].index(
            keys["distance"].choice([d.name for d in distances])
        )
    if (access, number) in seen:
        raise keys["access"].error(f"expected {access} once at this distance, got it twice")
    return access, number


def _read_curves(node: Node, distances: tuple[Distance, ...]) -> dict[tuple[str, int], Curve]:
    curves: dict[tuple[str, int], Curve] = {}
    for item in node.items():
        keys = item.fields(("access", "points"), ("distance",))
        place = _read_place(keys, distances, curves)
        curves[place] = _read_points(keys["points"], _read_throughput)
    for access in NEEDED:
        if not any(known == access for known, _ in curves):
            raise node.error(f"expected a curve for each of {', '.join(NEEDED)}, got no {access}")
    return curves


def _read_points(node: Node, reader: Callable[[str], float]) -> Curve:
    sizes: list[int] = []
    values: list[float] = []
    for key, value in node.entries().items():
        try:
            size = parse_size(key)
        except UsageError as error:
            raise value.error(str(error)) from None
        if size <= (sizes[-1] if sizes else 0):
            raise value.error("expected sizes above 0 that increase")
        sizes.append(size)
        values.append(value.parse(reader))
    if not sizes:
        raise node.error('expected at least one point, e.g. "32KiB: 20GBps", got none')
    return Curve(tuple(sizes), tuple(values))


def _read_throughput(text: str) -> float:
    value = parse_bandwidth(text)
    if value == 0.0:
        raise UsageError(f'expected a bandwidth above 0, got "{text}"')
    return value


def _read_part(text: str) -> float:
    value = real(text)
    if value is None or not 0.0 <= value <= 1.0:
        raise UsageError(f'expected a number from 0 to 1, got "{text}"')
    return value


def _read_latencies(node: Node, distances: tuple[Distance, ...]) -> dict[tuple[str, int], float]:
    latencies: dict[tuple[str, int], float] = {}
    for item in node.items():
        keys = item.fields(("access", "time"), ("distance",))
        place = _read_place(keys, distances, latencies)
        latencies[place] = keys["time"].parse(parse_time)
    return latencies


def _read_contention(node: Node) -> tuple[float, float]:
    keys = node.fields(("base", "slope"))
    return keys["base"].parse(parse_time), keys["slope"].parse(parse_time)


def _read_streams(node: Node) -> dict[str, Stream]:
    streams: dict[str, Stream] = {}
    for item in node.items():
        keys = item.fields(("state", "per_line", "start", "amortized"))
        state = keys["state"].choice("MOESFI")
        if state in streams:
            raise keys["state"].error(f"expected {state} once, got it twice")
        streams[state] = Stream(
            keys["per_line"].parse(parse_time),
            keys["start"].parse(parse_time),
            keys["amortized"].parse(parse_time),
        )
    return streams


def _read_packing(node: Node) -> tuple[float, float]:
    keys = node.fields(("node", "network"))
    return keys["node"].parse(parse_time), keys["network"].parse(parse_time)


def find_node(node: Node, known: Collection[str]) -> NodeDescription:
    """The description of this name, from a machine that ships with pysmpi. Raises UsageError."""
    name = node.text()
    path = MACHINES / f"{name}.yaml"
    if path.parent == MACHINES and path.is_file():
        described = read_nodes_of(path)
        if name in described:
            return described[name]
    names = [*known, *(path.stem for path in sorted(MACHINES.glob("*.yaml")) if _describes(path))]
    hint = did_you_mean(name, names, '"{}"')
    raise node.error(f'expected a node among {", ".join(names)}, got "{name}"{hint}')


def read_nodes_of(path: Path) -> dict[str, NodeDescription]:
    """The descriptions in a platform file. Raises UsageError."""
    entries = compose(path).entries()
    return read_nodes(entries["nodes"]) if "nodes" in entries else {}


def _describes(path: Path) -> bool:
    """Whether an included machine describes a node of its own name."""
    return path.stem in read_nodes_of(path)
