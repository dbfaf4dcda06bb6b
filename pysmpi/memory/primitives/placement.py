"""The places of processes and variables, and the costs of transfers between two places."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pysmpi.errors import UsageError
from pysmpi.memory.coherence import LineTransfer
from pysmpi.memory.coherence.protocol import CACHE, OWN
from pysmpi.platform.loader import load
from pysmpi.platform.loader import shipped as platforms_shipped
from pysmpi.platform.node_description import NodeDescription
from pysmpi.platform.nodes import Node, compose
from pysmpi.platform.units import parse_size, parse_time
from pysmpi.text import did_you_mean

MACHINES = Path(__file__).parent / "machines"

HIT, MEMORY, LOOKUP, INVALIDATION, UPGRADE = "hit", "memory", "lookup", "invalidation", "upgrade"
KINDS = (CACHE, MEMORY, LOOKUP, INVALIDATION, UPGRADE)

_SUFFIXES = (".yaml", ".yml")


class TransferType(NamedTuple):
    """The kind of transfer of an access, and its distance (0 for a hit).

    kind: hit; cache (another cache sends the line); memory, alone, with another cache looked up or
    with copies invalidated; upgrade (copies are invalidated and no data moves). The paper's 13
    types are the first four misses over three distances, and the hit.
    """

    kind: str
    distance: int = 0

    def __str__(self) -> str:
        return self.kind if self.kind == HIT else f"{self.kind}/{self.distance}"


# A processor by the levels of the machine: (module, node, processor).
Position = tuple[int, ...]


def distance(one: Position, other: Position) -> int:
    """The number of levels above the node at which two processors meet: 0 in the same node."""
    for level, (a, b) in enumerate(zip(one[:-1], other[:-1])):
        if a != b:
            return len(one) - 1 - level
    return 0


def at_distance(processes: int, far: int, levels: int = 3) -> tuple[Position, ...]:
    """Positions of processes that are all `far` from each other, on a machine of `levels`."""
    place = levels - 1 - far
    return tuple(
        tuple(i if level == place else 0 for level in range(levels)) for i in range(processes)
    )


def parse_mapping(text: str) -> tuple[Position, ...]:
    """Positions as `0.0.0,0.1.0`: module, node and processor of each process. Raises UsageError."""
    positions = []
    for part in text.split(","):
        numbers = part.strip().split(".")
        if not all(number.isdecimal() for number in numbers):
            raise UsageError(
                f'mapping: expected module.node.processor for each process, got "{part.strip()}"'
            )
        positions.append(tuple(int(number) for number in numbers))
    if len({len(position) for position in positions}) != 1:
        raise UsageError(f'mapping: expected as many levels for every process, got "{text}"')
    for i, position in enumerate(positions):
        if position in positions[:i]:
            raise UsageError(
                f"mapping: expected a processor for each process, got "
                f"{'.'.join(map(str, position))} for two"
            )
    return tuple(positions)


def type_of(
    transfer: LineTransfer, who: int, home: int, positions: Sequence[Position]
) -> TransferType:
    """The type of the transfer of process `who` for a variable in the node of process `home`."""
    here = positions[who]
    if transfer.source == CACHE and transfer.provider is not None:
        return TransferType(CACHE, distance(here, positions[transfer.provider]))
    if transfer.source == OWN:
        told = transfer.invalidated or transfer.updated
        if not told:
            return TransferType(HIT)
        return TransferType(UPGRADE, max(distance(here, positions[i]) for i in told))
    kind = MEMORY
    if transfer.invalidated:
        kind = INVALIDATION
    elif transfer.lookup is not None:
        kind = LOOKUP
    return TransferType(kind, distance(here, positions[home]))


@dataclass(frozen=True)
class Latencies:
    """The time of each transfer (s): `hit`, and by distance and kind.

    protocol: the machine's; line: bytes of a cache line.
    """

    name: str
    hit: float
    distances: tuple[Mapping[str, float], ...]
    names: tuple[str, ...]
    protocol: str | None = None
    description: str = ""
    sources: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    line: int = 64

    def of(self, kind: TransferType) -> float:
        """The mean latency (s) of a transfer. Raises UsageError for a distance without one."""
        if kind.kind == HIT:
            return self.hit
        if kind.distance >= len(self.distances):
            raise UsageError(
                f"{self.name}: expected a distance below {len(self.distances)}, got {kind.distance}"
            )
        return self.distances[kind.distance][kind.kind]


def shipped() -> list[str]:
    """Names of the included machines with latencies, sorted."""
    return sorted(path.stem for path in MACHINES.glob("*.yaml"))


def latencies(name: str | os.PathLike[str]) -> Latencies:
    """The latencies of an included machine, in a file, or of the nodes of a platform.

    Raises UsageError; the message is one line with the error and its place.
    """
    text = os.fspath(name)
    path = Path(text)
    if path.suffix.lower() in _SUFFIXES or os.sep in text:
        try:
            if "hit" in compose(path).entries():
                return read_latencies(path)
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
        return of_platform(text)
    if text in shipped():
        return read_latencies(MACHINES / f"{text}.yaml")
    platforms = platforms_shipped()
    if text not in platforms:
        hint = did_you_mean(text, [*shipped(), *platforms], '"{}"')
        raise UsageError(
            f"latencies: expected a file, one of {', '.join(shipped())}, or a platform that "
            f'describes its nodes, got "{text}"{hint}'
        )
    return of_platform(text)


def of_platform(name: str) -> Latencies:
    """The latencies of the first node that a platform describes. Raises UsageError."""
    nodes = [host.node for host in load(name).hosts if host.node is not None]
    if not nodes:
        raise UsageError(f"{name}: expected a platform that describes its nodes, got one without")
    return of_node(nodes[0])


def of_node(node: NodeDescription) -> Latencies:
    """The latencies of a described node."""
    rows = [
        {
            CACHE: node.latency("LMM", far),
            MEMORY: node.latency("LMI", far),
            LOOKUP: node.latency("LME", far),
            INVALIDATION: node.latency("SMS", far),
            UPGRADE: node.latency("SHS", far),
        }
        for far in range(len(node.distances))
    ]
    return Latencies(
        node.name,
        node.latency("LHM"),
        tuple(rows),
        tuple(distance.name for distance in node.distances),
        node.protocol,
        node.description,
        node.sources,
        line=node.line,
    )


def read_latencies(path: Path) -> Latencies:
    """The latencies in the file `path`. Raises UsageError."""
    keys = compose(path).fields(
        ("name", "hit", "distances"), ("description", "sources", "assumptions", "protocol", "line")
    )
    rows = []
    names = []
    for node in keys["distances"].items():
        fields = node.fields(("name", CACHE, MEMORY), (LOOKUP, INVALIDATION, UPGRADE))
        names.append(fields.pop("name").text())
        row = {kind: _positive(value) for kind, value in fields.items()}
        row.setdefault(LOOKUP, row[MEMORY])
        row.setdefault(INVALIDATION, row[MEMORY])
        row.setdefault(UPGRADE, row[INVALIDATION])
        rows.append(row)
    if not rows:
        raise keys["distances"].error("expected at least one distance, got none")
    return Latencies(
        keys["name"].text(),
        _positive(keys["hit"]),
        tuple(rows),
        tuple(names),
        keys["protocol"].text() if "protocol" in keys else None,
        keys["description"].text().strip() if "description" in keys else "",
        tuple(node.text() for node in keys["sources"].items()) if "sources" in keys else (),
        tuple(node.text() for node in keys["assumptions"].items()) if "assumptions" in keys else (),
        _line(keys["line"]) if "line" in keys else 64,
    )


def _line(node: Node) -> int:
    value: int = node.parse(parse_size)
    if value < 1:
        raise node.error("expected 1 byte or more")
    return value


def _positive(node: Node) -> float:
    value: float = node.parse(parse_time)
    if value <= 0.0:
        raise node.error("expected a time above 0, as an access is a step in time")
    return value
