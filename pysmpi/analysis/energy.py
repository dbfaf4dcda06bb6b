"""The energy of hosts and links, from the power that their properties give.

As SimGrid's plugins `host_energy` and `link_energy`:

| property | of | watts |
| --- | --- | --- |
| `wattage_per_state` | a host | `Idle:Epsilon:AllCores` or `Idle:AllCores`, one for each pstate |
| `wattage_range` | a link | `Idle:Busy` |

A host without work takes `Idle`. A host with work takes `Epsilon`, and in addition the part of
`AllCores` - `Epsilon` that its cores are in use; without `Epsilon`, that is `Idle`. A link takes
`Idle`, and in addition the part of `Busy` - `Idle` that its bandwidth is in use. Only compute is
work: waits, overheads of messages and sleep are idle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.kernel.process import Process
from pysmpi.platform.model import Host, Link, Platform
from pysmpi.python.records import record
from pysmpi.ranks.instruments import Instrument, InstrumentedRun
from pysmpi.time.figures import EnergyFigures, HostEnergyFigures, LinkEnergyFigures

HOST, LINK = "wattage_per_state", "wattage_range"
_OLD = {HOST: "watt_per_state", LINK: "watt_range"}  # their names before SimGrid 3.27


@record(frozen=True)
class HostPower:
    """The watts of a host: without work, with the least work, and with work on all cores."""

    idle: float
    epsilon: float
    full: float


def _watts(text: str, where: str, expected: str, counts: tuple[int, ...]) -> list[float]:
    parts = text.split(":")
    try:
        watts = [float(part) for part in parts]
    except ValueError:
        watts = []
    if len(watts) not in counts or not all(0.0 <= one < math.inf for one in watts):
        raise UsageError(f"{where}: expected {expected} in watts, got {text.strip()!r}")
    return watts


def host_power(host: Host) -> HostPower | None:
    """The power of a host in its pstate; None if it has no such property. Raises UsageError."""
    text = _property(host.properties, HOST)
    if text is None:
        return None
    states = text.split(",")
    expected = "Idle:AllCores or Idle:Epsilon:AllCores"
    where = f"host {host.name}: {HOST}"
    if host.speeds and len(states) != len(host.speeds):
        raise UsageError(
            f"{where}: expected watts for each of {len(host.speeds)} pstates, got {len(states)}"
        )
    pstate = host.speeds.index(host.speed) if host.speed in host.speeds else 0
    watts = _watts(states[pstate], where, expected, (2, 3))
    return HostPower(watts[0], watts[-2], watts[-1])


def link_power(link: Link) -> tuple[float, float] | None:
    """The watts of a link without and with full use; None if it has no such property."""
    text = _property(link.properties, LINK)
    if text is None:
        return None
    idle, busy = _watts(text, f"link {link.name}: {LINK}", "Idle:Busy", (2,))
    return idle, busy


def _property(properties: Mapping[str, str], name: str) -> str | None:
    return properties.get(name, properties.get(_OLD[name]))


def energy_of(platform: Platform) -> list[Instrument]:
    """The instrument that sums up energy, if the platform gives the power of something."""
    hosts = {host.index: power for host in platform.hosts if (power := host_power(host))}
    links = {link.name: watts for link in platform.links if (watts := link_power(link))}
    return [Energy(platform, hosts, links)] if hosts or links else []


class Energy(Instrument):
    """Sums up the energy of one run."""

    def __init__(
        self,
        platform: Platform,
        hosts: Mapping[int, HostPower],
        links: Mapping[str, tuple[float, float]],
    ) -> None:
        self.platform = platform
        self.hosts = hosts
        self.links = links
        self.carried = dict.fromkeys(links, 0.0)  # bytes, with cross-traffic
        self.cores: dict[tuple[int, int], float] = {}  # the time until which a core is busy
        # By host: the time until which a core is busy, the seconds with work, those of all cores.
        self.until: dict[int, float] = {}
        self.busy: dict[int, float] = {}
        self.used: dict[int, float] = {}
        if links:
            self.flow_started = self._flow_started
        if hosts:
            self.program_begun = self._program_begun

    def attach(self, run: InstrumentedRun) -> None:
        """The ranks are about to begin."""
        self.simulation = run.simulation

    def _flow_started(self, send: Any, now: float) -> None:
        plan = send.plan
        if plan is None or not plan.constraints:
            return
        # The part of the bandwidth that protocols take is in use, too. As in SimGrid, a message
        # uses its links from its start on, also while its first byte is on its way.
        used = plan.volume / plan.factor
        if plan.bound < math.inf:
            used += plan.latency * plan.bound
        for constraint, weight in zip(plan.constraints, plan.weights):
            if constraint.name in self.carried:
                self.carried[constraint.name] += weight * used

    def _program_begun(self, process: Process, now: float) -> None:
        """A process computes from now on: what it owes."""
        seconds = process.debt
        if seconds <= 0.0:
            return
        slot = self.simulation.slots[process.slot]
        host = slot.host.index
        # Ranks that share a core keep it busy for the sum of their times.
        core = host, slot.core
        begin = max(now, self.cores.get(core, 0.0))
        end = self.cores[core] = begin + seconds
        before = self.until.get(host, 0.0)
        if end > before:
            self.busy[host] = self.busy.get(host, 0.0) + end - max(begin, before)
            self.until[host] = end
        self.used[host] = self.used.get(host, 0.0) + seconds

    def finish(self, result: Any) -> None:
        """Add the joules to the result."""
        seconds = result.seconds
        hosts: list[HostEnergyFigures] = []
        shares: dict[str, float] = {}  # of each rank of a host in what no rank causes alone
        slopes: dict[str, float] = {}
        residents: dict[str, int] = {}
        for rank in result.ranks:
            residents[rank["host"]] = residents.get(rank["host"], 0) + 1
        for host in self.platform.hosts:
            power = self.hosts.get(host.index)
            if power is None:
                continue
            busy = min(seconds, self.busy.get(host.index, 0.0))
            used = min(self.used.get(host.index, 0.0), busy * host.cores)
            slope = (power.full - power.epsilon) / host.cores
            static = power.idle * seconds + (power.epsilon - power.idle) * busy
            hosts.append(
                {
                    "host": host.name,
                    "joules": static + slope * used,
                    "idle_joules": power.idle * seconds,
                    "busy_seconds": busy,
                    "load": used / (host.cores * seconds) if seconds > 0.0 else 0.0,
                }
            )
            shares[host.name] = static / residents.get(host.name, 1)
            slopes[host.name] = slope
        links: list[LinkEnergyFigures] = []
        for link in self.platform.links:
            if link.name not in self.links:
                continue
            idle, full = self.links[link.name]
            carried = self.carried[link.name]
            links.append(
                {
                    "link": link.name,
                    "joules": idle * seconds + (full - idle) * carried / link.bandwidth,
                    "idle_joules": idle * seconds,
                    "bytes": carried,
                }
            )
        figures: EnergyFigures = {
            "joules": sum(one["joules"] for one in hosts) + sum(one["joules"] for one in links),
            "hosts": hosts,
            "links": links,
            "ranks": [
                shares.get(rank["host"], 0.0)
                + slopes.get(rank["host"], 0.0) * rank["compute_seconds"]
                for rank in result.ranks
            ],
        }
        result.energy = figures
