"""Messages between hosts with several network cards, which are called rails.

The sender's host has the rule that chooses a rail for each message (`pysmpi.platform.rails`). By
rules for places, both ends use their own rail, as long as the rails share a network; by the others,
a message arrives at the rail with the number of the one that it left.

A striped message is one flow over the links of all rails that both hosts have. Each rail carries a
part of it, in proportion to its bandwidth, and the parts end together: its rate is limited by the
slowest part. A part of n bytes has the bandwidth factor of a message of n bytes; latency, overheads
and protocol are those of the whole message.

A message passes by a rail that is off, if another one goes there.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

from pysmpi.errors import UsageError
from pysmpi.kernel.activities import Constraint
from pysmpi.kernel.plan import Plan, Transport, Turns
from pysmpi.network.flows import End, FlowTransport, Path, swapped
from pysmpi.platform.config import Settings
from pysmpi.platform.model import Host, Link, Platform
from pysmpi.platform.placement import Slot
from pysmpi.platform.rails import BY_CORE, BY_PLACE, BY_RANK, BY_SIZE, ROUND_ROBIN

Lane = tuple[int, int]  # the numbers of the rails at both ends


class RailTransport(Transport):
    """Plans of messages over the rails that hosts have.

    `flows` is the network over the links of routes, `slots[slot]` the place of each slot; it may
    grow. Hosts use at most `most` of their rails. Messages do not use links that are `off`.
    """

    def __init__(self, flows: FlowTransport, slots: Sequence[Slot], most: int) -> None:
        self.flows = flows
        self.slots = slots
        self.most = most
        self.off: set[Link] = set()
        self.ends: dict[int, End] = {}  # by host and rail
        self.split: dict[tuple[int, int, tuple[Lane, ...]], Path] = {}
        self.counts: dict[tuple[int, int], list[int]] = {}
        self.rails: list[int] = []  # of each slot, if it has one of its own
        flows.width *= most

    def plan(self, source: int, destination: int, nbytes: int) -> Plan:
        """The plan of a message of `nbytes` between two slots."""
        src, dst = self.slots[source].host, self.slots[destination].host
        if src is dst or (src.rails is None and dst.rails is None):
            return self._over(src, dst, [(0, 0)], nbytes)
        lanes = self.lanes(source, destination, nbytes)
        rails = src.rails
        if len(lanes) == 1 or rails is None or _stripes(src, nbytes):
            return self._over(src, dst, lanes, nbytes)
        plans = [self._over(src, dst, [lane], nbytes) for lane in lanes]
        turns = Turns(self.counts.setdefault((src.index, dst.index), [0]), plans)
        for plan in plans:
            plan.turns = turns
        return plans[0]

    def lanes(self, source: int, destination: int, nbytes: int) -> list[Lane]:
        """The rails that a message between two hosts uses: all of them, or one of them in turn."""
        src, dst = self.slots[source].host, self.slots[destination].host
        both = min(self.count(src), self.count(dst))
        rule = None if src.rails is None else src.rails.definition
        choice = "" if rule is None else rule.choice
        if rule is not None and both > 1 and (_stripes(src, nbytes) or choice == ROUND_ROBIN):
            lanes = [(rail, rail) for rail in range(both)]
            return [lane for lane in lanes if self._works(src, dst, lane)] or lanes
        first = self._own(source) if choice in BY_PLACE else 0
        if rule is not None and choice == BY_SIZE:
            first = min(bisect_right(rule.sizes, nbytes), self.count(src) - 1)
        apart = any(end.rails is not None and end.rails.definition.separate for end in (src, dst))
        if apart:
            first %= both
        last = first % self.count(dst)
        arrives = dst.rails is not None and dst.rails.definition.choice in BY_PLACE
        if arrives and not apart and (rule is None or choice in BY_PLACE):
            last = self._own(destination)
        return [self._working(src, dst, (first, last), apart)]

    def count(self, host: Host) -> int:
        """The number of rails of a host that are used."""
        return 1 if host.rails is None else min(self.most, len(host.rails.swaps))

    def place(self, slot: int) -> int:
        """The host, and the rail of the slot if it has one of its own."""
        host = self.slots[slot].host
        own = 0
        if host.rails is not None and host.rails.definition.choice in BY_PLACE:
            own = self._own(slot)
        return host.index * self.most + own

    def host_numbers(self, slots: int) -> list[int]:
        """The host of each slot."""
        return [self.slots[slot].host.index for slot in range(slots)]

    def turn(self, link: Link, off: bool) -> None:
        """A link goes off, or on again: the plans to come differ."""
        if off:
            self.off.add(link)
        else:
            self.off.discard(link)
        self.forget()

    def forget(self) -> None:
        """Forget the paths: links have changed."""
        self.flows.paths.clear()
        self.split.clear()

    def _own(self, slot: int) -> int:
        """The rail of a slot, by the rule of its host."""
        if slot >= len(self.rails):
            ranks = Counter(place.host.index for place in self.slots)
            seen: Counter[int] = Counter()
            for number, (host, core) in enumerate(self.slots):
                local = seen[host.index]
                seen[host.index] += 1
                if number < len(self.rails):
                    continue  # ranks that were spawned later leave it its rail
                count = self.count(host)
                choice = "" if host.rails is None else host.rails.definition.choice
                if choice == BY_CORE:
                    rail = core * count // host.cores
                elif choice == BY_RANK:
                    rail = local % count
                else:
                    rail = local * count // ranks[host.index]
                self.rails.append(rail)
        return self.rails[slot]

    def _working(self, src: Host, dst: Host, lane: Lane, apart: bool) -> Lane:
        """The lane, or the first one after it without a link that is off."""
        if self._works(src, dst, lane):
            return lane
        first, last = lane
        out, into = self.count(src), self.count(dst)
        for one in range(out):
            for other in range(into):
                found = (first + one) % out, (last + other) % into
                if (not apart or found[0] == found[1]) and self._works(src, dst, found):
                    return found
        return lane

    def _works(self, src: Host, dst: Host, lane: Lane) -> bool:
        """Whether all links of a lane are on."""
        return not self.off or self.off.isdisjoint(self._links(src, dst, lane))

    def _links(self, src: Host, dst: Host, lane: Lane) -> list[Link]:
        """The links of a lane, and those of the way back if acknowledgements use it."""
        one, other = _swap(src, lane[0]), _swap(dst, lane[1])
        links = [*self.flows.platform.way(src, dst)]
        if self.flows.cross_traffic:
            links += self.flows.platform.way(dst, src)
        return [swapped(link, one, other) for link in links]

    def _end(self, host: Host, rail: int) -> End:
        index = host.index * self.most + rail
        end = self.ends.get(index)
        if end is None:
            end = self.ends[index] = self.flows.new_end(host, index, _swap(host, rail))
        return end

    def _over(self, src: Host, dst: Host, lanes: list[Lane], nbytes: int) -> Plan:
        """The plan of a message over one lane, or over all of several lanes."""
        one, other = self._end(src, lanes[0][0]), self._end(dst, lanes[0][1])
        if len(lanes) == 1:
            return self.flows.planned(self.flows.path(one, other), one, other, nbytes, nbytes)
        parts = [self._bandwidth(src, dst, lane) for lane in lanes]
        key = src.index, dst.index, tuple(lanes)
        path = self.split.get(key)
        if path is None:
            paths = [self.flows.path(self._end(src, a), self._end(dst, b)) for a, b in lanes]
            path = self.split[key] = joined(paths, [part / sum(parts) for part in parts])
        largest = math.ceil(nbytes * max(parts) / sum(parts))
        return self.flows.planned(path, one, other, nbytes, largest)

    def _bandwidth(self, src: Host, dst: Host, lane: Lane) -> float:
        """The bandwidth (bytes/s) of a lane in the platform."""
        one, other = _swap(src, lane[0]), _swap(dst, lane[1])
        links: list[Link] = [
            swapped(link, one, other) for link in self.flows.platform.way(src, dst)
        ]
        return min(link.bandwidth for link in links)


def _swap(host: Host, rail: int) -> dict[object, object] | None:
    """The links of a rail in the place of those in routes."""
    if host.rails is None or rail == 0:
        return None
    found: dict[object, object] = host.rails.swaps[rail]  # type: ignore[assignment]
    return found


def _stripes(host: Host, nbytes: int) -> bool:
    """Whether a host splits messages of a size over its rails."""
    if host.rails is None:
        return False
    start = host.rails.definition.stripe_from
    return start is not None and nbytes >= start


def joined(paths: Sequence[Path], shares: Sequence[float]) -> Path:
    """The path of messages of which each path carries a share; the sum of the shares is 1."""
    weights: dict[Constraint, float] = {}
    parts: dict[Constraint, float] = {}
    # Side by side, the first links of all paths first.
    for hop in range(max(len(path.constraints) for path in paths)):
        for path, share in zip(paths, shares, strict=True):
            if hop >= len(path.constraints):
                continue
            constraint, weight = path.constraints[hop], path.weights[hop]
            weights[constraint] = weights.get(constraint, 0.0) + share * weight
            # Acknowledgements take less than 1; the bytes of the message cross no such link.
            parts[constraint] = parts.get(constraint, 0.0) + share * math.floor(weight)
    return Path(
        max(path.latency for path in paths),
        min(path.bound / share for path, share in zip(paths, shares, strict=True)),
        # Each part has the share of a link that a message of this rail alone would have.
        1.0 / sum(1.0 / path.penalty for path in paths),
        list(weights),
        list(weights.values()),
        list(parts.values()),
    )


def over_rails(
    network: Transport, platform: Platform, slots: Sequence[Slot], settings: Settings, model: str
) -> Transport:
    """The network over all rails of the hosts; `network` itself if no host has several.

    Raises UsageError for a model that knows one network card in each host.
    """
    most = max(
        (len(host.rails.swaps) for host in platform.hosts if host.rails is not None), default=1
    )
    wanted = settings.value("network/rails")
    if wanted is not None:
        most = min(most, wanted)
    if most == 1:
        return network
    if not isinstance(network, FlowTransport):
        raise UsageError(
            f"{platform.source}: rails: model {model} has one network card in each host; choose "
            "a model whose messages share links (hybrid, fluid, cm02 or lv08), or use the first "
            "rail only: --cfg network/rails:1"
        )
    return RailTransport(network, slots, most)
