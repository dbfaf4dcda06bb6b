"""The line costs of a computer, from the description of its inside in the platform."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache

from pysmpi.errors import UsageError
from pysmpi.memory.lines.costs import LineCosts, MultiLine, Reads
from pysmpi.platform.loader import load
from pysmpi.platform.model import Host
from pysmpi.platform.node_description import NodeDescription
from pysmpi.text import manual

_LARGE = 64 * 1024  # bytes of the buffer that gives the throughput of many lines


def line_costs(node: NodeDescription, cores: Collection[int]) -> LineCosts | None:
    """The costs between the farthest two of some cores of a computer.

    None if the description has no latencies. If it has no costs of several lines, further lines
    have the throughput of the curves. If it has no slope of contention, readers do not disturb each
    other.
    """
    if not node.latencies:
        return None
    far = node.distance(min(cores), max(cores))
    local = Reads(*(node.latency(f"LH{state}") for state in "MES"))
    remote = Reads(*(node.latency(f"LM{state}", far) for state in "MES"))
    return LineCosts(
        local,
        remote,
        node.latency("LMI", far),
        node.contention[1] if node.contention is not None else 0.0,
        _multi_line(node, "E", far),
        _multi_line(node, "I", far),
        node.line,
    )


def _multi_line(node: NodeDescription, state: str, distance: int) -> MultiLine:
    found = node.streams.get(state)
    if found is not None:
        return MultiLine(found.per_line, found.start, found.amortized)
    per_line = node.line / node.throughput(f"LM{state}", distance, _LARGE)
    first = node.latency("LMI", distance) if state == "I" else node.latency("LHE")
    one = first + 2 * node.latency("LME", distance)
    return MultiLine(per_line, one - per_line, 0.0)


class HostLines:
    """The line costs of hosts, by the number of the host and the cores that ranks are on."""

    def __init__(self, slots: Iterable[tuple[Host, int]]) -> None:
        """`slots` are the places of ranks: a host and one of its cores."""
        self._cores: dict[int, set[int]] = {}
        self._nodes: dict[int, NodeDescription | None] = {}
        for host, core in slots:
            self._cores.setdefault(host.index, set()).add(core)
            self._nodes[host.index] = host.node
        self._known: dict[int, LineCosts | None] = {}

    def of(self, host: int) -> LineCosts | None:
        """The costs between the used cores of a host; None if they are unknown."""
        if host not in self._known:
            node = self._nodes.get(host)
            if node is None:
                found = None
            else:
                found = line_costs(node, {core % node.cores for core in self._cores[host]})
            self._known[host] = found
        return self._known[host]


def described(machine: str) -> NodeDescription:
    """The inside of the first computer of a machine (an included one or a file).

    Raises UsageError if the machine has no described computer, or no latencies.
    """
    platform = load(machine)
    node = next((host.node for host in platform.hosts if host.node is not None), None)
    if node is None or not node.latencies:
        raise UsageError(
            f"{machine}: expected a computer with a node that has latencies, got none; see "
            f"{manual('Nodes: sockets, caches and memory')}"
        )
    return node


@lru_cache(maxsize=64)
def costs_of(machine: str, cores: int = 0) -> LineCosts:
    """The costs between the first `cores` cores (0: all) of the first computer of a machine.

    Raises UsageError.
    """
    node = described(machine)
    result = line_costs(node, range(min(cores or node.cores, node.cores)))
    assert result is not None
    return result


XEON_PHI = "xeon-phi-5110p"
