"""Rails: the network cards of a host, and the rule that chooses among them for a message.

The links of the first rail are those in the routes of the platform. Each further rail has links of
its own in the place of some of them: of the host's own links, or of all links of its cluster if
each rail is a network of its own (`separate`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pysmpi.errors import UsageError
from pysmpi.platform.definition import RailsDef
from pysmpi.platform.numbers import read_count
from pysmpi.platform.units import (
    format_bandwidth,
    format_size,
    format_time,
    parse_bandwidth,
    parse_size,
    parse_time,
)
from pysmpi.text import count

if TYPE_CHECKING:
    from pysmpi.platform.nodes import Node
    from pysmpi.platform.points import Link

# Rules of choice, the default first.
BY_BLOCK = "by-block"
BY_CORE = "by-core"
BY_RANK = "by-rank"
BY_SIZE = "by-size"
ROUND_ROBIN = "round-robin"
FIRST = "first"
CHOICES = {
    BY_BLOCK: "the ranks of a host in blocks, as equal as possible",
    BY_CORE: "the rail nearest to the core: the cores in equal blocks",
    BY_RANK: "the ranks of a host in turn",
    BY_SIZE: "a rail for each range of sizes",
    ROUND_ROBIN: "the messages of two hosts in turn",
    FIRST: "the first rail",
}
# Rules by which both ends of a message choose; by the others, it arrives at the rail that it left.
BY_PLACE = (BY_BLOCK, BY_CORE, BY_RANK)
MOST = 64  # rails of a host


def read_rails(node: Node, of_cluster: bool) -> RailsDef:
    """The rails of a cluster, or of a host that names its links. Raises UsageError."""
    own = "others" if of_cluster else "links"
    keys = node.fields((), ("count", "choice", "stripe_from", "sizes", "separate", own))
    rails = RailsDef(0, where=node.where)
    if "links" in keys:
        rails.links = [[name.text() for name in one.items()] for one in keys["links"].items()]
        counts = {len(names) for names in rails.links}
        if len(counts) != 1:
            raise keys["links"].error(
                "expected lists of equal length, each a link in the routes and that of each "
                f"further rail, got {len(counts) or 'no'} lengths"
            )
        rails.count = counts.pop()
    if "others" in keys:
        rails.others = [_read_other(one) for one in keys["others"].items()]
        rails.count = 1 + len(rails.others)
    if "count" in keys:
        number = keys["count"].parse(read_count)
        if rails.count and number != rails.count:
            raise keys["count"].error(f"expected {rails.count}, the rails listed, got {number}")
        rails.count = number
    if not rails.count:
        needed = "count" if of_cluster else "links"
        raise node.error(f'expected the key "{needed}", got none')
    if not of_cluster and not rails.links:
        raise node.error('expected the key "links" with the links of each rail, got none')
    if not 2 <= rails.count <= MOST:
        raise node.error(f"expected 2 to {MOST} rails, got {rails.count}")
    if "choice" in keys:
        rails.choice = keys["choice"].choice(tuple(CHOICES))
    if "stripe_from" in keys:
        rails.stripe_from = keys["stripe_from"].parse(_bytes)
    if "separate" in keys:
        rails.separate = keys["separate"].switch()
    if "sizes" in keys:
        if rails.choice != BY_SIZE:
            raise keys["sizes"].error(
                f"expected sizes only by choice {BY_SIZE}, got {rails.choice}"
            )
        rails.sizes = tuple(one.parse(_bytes) for one in keys["sizes"].items())
        if len(rails.sizes) != rails.count - 1 or list(rails.sizes) != sorted(set(rails.sizes)):
            raise keys["sizes"].error(
                f"expected {count(rails.count - 1, 'size')} in rising order, from which on the "
                "second rail and each further one is used"
            )
    elif rails.choice == BY_SIZE:
        raise node.error(f'expected the key "sizes" with choice {BY_SIZE}, got none')
    return rails


def _bytes(text: str) -> int:
    return parse_size(text, bare=True)


def _read_other(node: Node) -> tuple[float | None, float | None]:
    keys = node.fields((), ("bandwidth", "latency"))
    bandwidth = keys["bandwidth"].parse(parse_bandwidth) if "bandwidth" in keys else None
    if bandwidth == 0.0:
        raise keys["bandwidth"].error("expected a bandwidth above 0, got 0")
    return bandwidth, keys["latency"].parse(parse_time) if "latency" in keys else None


def rails_keys(rails: RailsDef) -> dict[str, object]:
    """The keys that `read_rails` reads as these rails."""
    keys: dict[str, object] = {}
    if not rails.others and not rails.links:
        keys["count"] = rails.count
    if rails.choice != BY_BLOCK:
        keys["choice"] = rails.choice
    if rails.sizes:
        keys["sizes"] = [format_size(one) for one in rails.sizes]
    if rails.stripe_from is not None:
        keys["stripe_from"] = format_size(rails.stripe_from)
    if rails.separate:
        keys["separate"] = True
    if rails.others:
        keys["others"] = [
            {
                name: form(value)
                for name, form, value in (
                    ("bandwidth", format_bandwidth, bandwidth),
                    ("latency", format_time, latency),
                )
                if value is not None
            }
            for bandwidth, latency in rails.others
        ]
    if rails.links:
        keys["links"] = [list(names) for names in rails.links]
    return keys


def describe_rails(rails: RailsDef) -> str:
    """One line about rails."""
    parts = [f"{rails.count} rails, choice {rails.choice} ({CHOICES[rails.choice]})"]
    if rails.sizes:
        parts.append("from " + ", ".join(map(format_size, rails.sizes)))
    if rails.stripe_from is not None:
        parts.append(f"striped from {format_size(rails.stripe_from)} on")
    if rails.separate:
        parts.append("each a network of its own")
    return ", ".join(parts)


def named_swaps(rails: RailsDef, find: Callable[[str], Sequence[Link]]) -> list[dict[Link, Link]]:
    """The swaps of each rail of a host that names its links.

    `find` returns the link, or the two of a split-duplex link, of a name. Raises UsageError.
    """
    swaps: list[dict[Link, Link]] = [{} for _ in range(rails.count)]
    taken: set[str] = set()
    for group in rails.links:
        first = find(group[0])
        for number, name in enumerate(group):
            links = find(name)
            if name in taken:
                raise UsageError(
                    f'{rails.where}: links: expected each link once, got "{name}" again'
                )
            taken.add(name)
            if len(links) != len(first):
                raise UsageError(
                    f'{rails.where}: links: expected "{group[0]}" and "{name}" to be split-duplex '
                    "both, or neither"
                )
            if number:
                swaps[number].update(zip(first, links, strict=True))
    return swaps
