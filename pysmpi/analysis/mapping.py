"""A placement of ranks that brings those together that communicate much.

The cost of a placement is the time of all its messages one by one: for each, the latency of its
route, and its bytes over the bandwidth of each link of the route. So it counts bytes times
links, as partitioners for machines do. Exchanges of two ranks improve a placement until none does
(local search for the quadratic assignment problem; Heider, 1972), from the given placement and from
one in which hosts are filled with ranks that talk to those already there. Contention and waits are
not in the cost, so a replay decides between the results.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pysmpi.analysis.communication import Communication
from pysmpi.errors import UsageError
from pysmpi.platform.model import Platform
from pysmpi.platform.placement import Slot
from pysmpi.replay import Replay
from pysmpi.trace.lines import read_lines
from pysmpi.trace.recorded_lines import is_recording
from pysmpi.trace.recorded_machine import machine_options

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

# The cost of a message inside a host, if its ranks are on different sockets: a little more than on
# one, whatever the model of the machine says.
OTHER_SOCKET = 1.25
# Costs that differ by less, relatively, are equal.
EQUAL = 1e-9


@dataclass
class MappedRanks:
    """The placement of ranks that a search returns, beside the one it began with.

    `seconds` are predicted times, `between` bytes between hosts; the first of both is that of the
    given placement.
    """

    communication: Communication
    given: list[Slot]
    slots: list[Slot]
    seconds: tuple[float, float]
    between: tuple[float, float]

    @property
    def saves(self) -> float:
        """The part of the predicted time that the placement saves."""
        return 1.0 - self.seconds[1] / self.seconds[0] if self.seconds[0] else 0.0

    def rank_file(self) -> str:
        """The placement as a rank file, for `--hostfile` and for Open MPI's `--rankfile`."""
        return rank_file(self.slots)

    def report(self) -> dict[str, object]:
        """The figures as plain data: seconds, bytes."""
        return {
            "schema": 1,
            "seconds_given": self.seconds[0],
            "seconds": self.seconds[1],
            "bytes_between_hosts_given": self.between[0],
            "bytes_between_hosts": self.between[1],
            "places": [[slot.host.name, slot.core] for slot in self.slots],
        }


def rank_file(slots: Sequence[Slot]) -> str:
    """The text of a rank file."""
    return "".join(
        f"rank {rank}={slot.host.name} slot={slot.core}\n" for rank, slot in enumerate(slots)
    )


def map_ranks(trace: str, options: Mapping[str, object]) -> MappedRanks:
    """A placement of the ranks of a trace on the slots that the options give them.

    `options` are those of `Machine`; without any, the machine and the placement are those of the
    recording. Raises UsageError.
    """
    options = {name: value for name, value in options.items() if value}
    if not options and is_recording(trace):
        options = dict(machine_options(read_lines(trace).facts))
    communication = Communication()
    replay = Replay([(trace, 0.0)], None, **options)
    first = replay.run(communication)
    machine = replay.machine
    given = list(machine.slots)
    if len(given) < 2:
        raise UsageError(f"{trace}: expected several ranks, got {len(given)}")
    distances = _distances(machine.platform, given)
    traffic = [
        _symmetric(communication.messages[: len(given), : len(given)]),
        _symmetric(communication.nbytes[: len(given), : len(given)]),
    ]
    best = MappedRanks(
        communication,
        given,
        given,
        (first.seconds, first.seconds),
        (_between(traffic[1], given), _between(traffic[1], given)),
    )
    tried = {tuple(range(len(given)))}
    for start in (list(range(len(given))), filled(traffic[1], given)):
        order = improved(traffic, distances, start)
        for one in (start, order):
            if tuple(one) in tried:
                continue
            tried.add(tuple(one))
            slots = [given[index] for index in one]
            seconds = _predicted(trace, options, slots)
            if seconds < best.seconds[1] * (1.0 - EQUAL):
                best.slots = slots
                best.seconds = first.seconds, seconds
                best.between = best.between[0], _between(traffic[1], slots)
    return best


def _predicted(trace: str, options: Mapping[str, object], slots: Sequence[Slot]) -> float:
    """The time of a trace with other places of its ranks."""
    others = {key: value for key, value in options.items() if key not in ("map_by", "rank_by")}
    with tempfile.TemporaryDirectory(prefix="pysmpi-") as folder:
        path = os.path.join(folder, "ranks")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(rank_file(slots))
        return Replay([(trace, 0.0)], None, **{**others, "hostfile": path}).run().seconds


def _symmetric(matrix: Matrix) -> Matrix:
    total = matrix + matrix.T
    np.fill_diagonal(total, 0.0)
    return total


def _between(nbytes: Matrix, slots: Sequence[Slot]) -> float:
    """The bytes between ranks on different hosts."""
    hosts = np.array([slot.host.index for slot in slots])
    return float(nbytes[hosts[:, None] != hosts[None, :]].sum()) / 2.0


def _distances(platform: Platform, slots: Sequence[Slot]) -> list[Matrix]:
    """Between two slots: the latency (s), and the seconds of a byte on all links of the route."""
    number = {slot.host: index for index, slot in enumerate(slots)}
    hosts = list(number)
    table = np.zeros((2, len(hosts), len(hosts)))
    for i, source in enumerate(hosts):
        for j, target in enumerate(hosts):
            links = platform.way(source, target)
            table[0, i, j] = sum(link.latency for link in links)
            table[1, i, j] = sum(1.0 / link.bandwidth for link in links)
    place = {host: index for index, host in enumerate(hosts)}
    at = np.array([place[slot.host] for slot in slots])
    sockets = np.array([slot.core * slot.host.sockets // slot.host.cores for slot in slots])
    apart = (at[:, None] == at[None, :]) & (sockets[:, None] != sockets[None, :])
    found = []
    for part in table:
        matrix = part[at[:, None], at[None, :]] * np.where(apart, OTHER_SOCKET, 1.0)
        matrix = (matrix + matrix.T) / 2.0
        np.fill_diagonal(matrix, 0.0)
        found.append(matrix)
    return found


def filled(nbytes: Matrix, slots: Sequence[Slot]) -> list[int]:
    """For each rank, the index of its slot: hosts in order, each filled with ranks that talk.

    The next rank of a host is the one with most bytes to the ranks that are on it, and of equal
    ones, and for a new host, the one with most bytes to all ranks that have their slots.
    """
    hosts: dict[object, list[int]] = {}
    for index, slot in enumerate(slots):
        hosts.setdefault(slot.host, []).append(index)
    left = np.ones(len(slots), dtype=bool)
    everywhere = np.zeros(len(slots))
    order = [0] * len(slots)
    first = int(np.argmax(nbytes.sum(axis=1)))
    everywhere[first] = 1.0
    for indices in hosts.values():
        here = np.zeros(len(slots))
        for index in indices:
            most = np.where(left, here, -1.0).max()
            candidates = left & (here == most)
            rank = int(np.argmax(np.where(candidates, everywhere, -1.0)))
            order[rank] = index
            left[rank] = False
            here += nbytes[rank]
            everywhere += nbytes[rank]
    return order


def improved(
    traffic: Sequence[Matrix], distances: Sequence[Matrix], start: Sequence[int]
) -> list[int]:
    """The order of slots after the best exchange of two ranks, again and again.

    The cost of an order is the sum of the products of traffic and distance, over all pairs and both
    kinds. Its change by an exchange follows from a matrix that each exchange updates.
    """
    order = np.array(start)
    parts = []
    for flow, distance in zip(traffic, distances, strict=True):
        placed = distance[np.ix_(order, order)]
        parts.append((flow, placed, flow @ placed.T))
    cost = sum(float((flow * placed).sum()) for flow, placed, _ in parts)
    for _ in range(2 * len(order)):
        change = np.zeros((len(order), len(order)))
        for flow, placed, sums in parts:
            own = np.diagonal(sums)
            change += sums + sums.T - own[:, None] - own[None, :] + 2.0 * flow * placed
        one, other = divmod(int(np.argmin(change)), len(order))
        if change[one, other] >= -EQUAL * cost:
            break
        order[[one, other]] = order[[other, one]]
        for flow, placed, sums in parts:
            placed[[one, other]] = placed[[other, one]]
            sums[:, [one, other]] = sums[:, [other, one]]
            sums += np.outer(flow[:, one] - flow[:, other], placed[:, other] - placed[:, one])
            placed[:, [one, other]] = placed[:, [other, one]]
        cost += 2.0 * float(change[one, other])
    return [int(index) for index in order]
