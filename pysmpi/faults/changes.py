"""Changes of a machine while ranks run: of speeds, bandwidths and latencies, and of states.

Profiles of the platform and `--fault` ask for them; both become courses of values over time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.faults.specification import Fault
from pysmpi.faults.speeds import SpeedProfile
from pysmpi.kernel.activities import Activity, Bundle, members_of
from pysmpi.kernel.core import Core
from pysmpi.kernel.engine import Flow
from pysmpi.kernel.plan import Plan, PlanBook
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import Send
from pysmpi.memory.bandwidth import nodes_of
from pysmpi.network.rails import RailTransport
from pysmpi.platform.definition import SHARED
from pysmpi.platform.model import Platform
from pysmpi.platform.points import Link
from pysmpi.platform.profiles import (
    BANDWIDTH,
    HOST_STATE,
    LATENCY,
    LINK_STATE,
    OF_HOSTS,
    SPEED,
    Change,
    Course,
    ProfileDef,
)
from pysmpi.ranks.simulation import Simulation

# The part of its speed that a core has on which others compute, too, while its host has speed 0.
STANDSTILL = 1e-30
# Changes of a part after each of which it is asked whether the next ones matter; and those after
# which it is an error that they do while nothing else happens.
OFTEN, MOST = 1000, 200_000
# An event at a time (s) times this is before all others of its instant (see kernel/engine.py).
FIRST = 1.0 - 4e-15


@dataclass
class ChangingPart:
    """A host, or a link, one property of which changes; `faults` say why it is off."""

    kind: str
    name: str
    course: Course
    link: Link | None = None
    faults: list[Fault] = field(default_factory=list)
    changed: int = 0  # times
    others: int = 0  # events but changes, when they were last counted
    alone: int = 0  # changes in a row beside which hardly anything happened

    @property
    def goes_off(self) -> bool:
        """Whether its value is ever 0."""
        values = [value for one in self.course.profiles for _, value in one.points]
        return 0.0 in values or any(one.factor == 0.0 for one in self.course.changes)

    def fault(self, date: float) -> Fault:
        """The fault that applies at a date, at which the part goes off."""
        found = next(one for one in reversed(self.faults) if one.date <= date < one.end)
        return replace(found, name=self.name, date=date)


def parts_of(
    platform: Platform, profiles: Sequence[ProfileDef], faults: Sequence[Fault]
) -> list[ChangingPart]:
    """All parts that change; a link that a split-duplex name means is two."""
    result: dict[tuple[str, str], ChangingPart] = {}

    def of(kind: str, name: str) -> list[ChangingPart]:
        links = [] if kind in OF_HOSTS else platform.links_of(name)
        names = [name] if kind in OF_HOSTS else [link.name for link in links]
        parts = []
        for i, one in enumerate(names):
            link = links[i] if links else None
            first = 1.0
            if link is not None and kind != LINK_STATE:
                first = link.bandwidth if kind == BANDWIDTH else link.latency
            parts.append(
                result.setdefault((kind, one), ChangingPart(kind, one, Course(first), link))
            )
        return parts

    for profile in profiles:
        for part in of(profile.kind, profile.name):
            part.course.profiles.append(profile.profile)
            if profile.kind in (HOST_STATE, LINK_STATE):
                kind = "host" if profile.kind == HOST_STATE else "link"
                part.faults.append(Fault(kind, profile.name, 0.0, None, "", profile.where))
    for fault in faults:
        for kind, factor in _effects(fault):
            for part in of(kind, fault.name):
                part.course.changes.append(Change(fault.date, fault.end, factor))
                if fault.dead:
                    part.faults.append(fault)
    return list(result.values())


def _effects(fault: Fault) -> Iterator[tuple[str, float]]:
    """The properties that a fault changes, and their factors."""
    host = fault.kind == "host"
    if fault.dead:
        yield (HOST_STATE if host else LINK_STATE), 0.0
    if fault.slow is not None:
        yield (SPEED if host else BANDWIDTH), 1.0 / fault.slow
    if fault.latency is not None:
        yield LATENCY, fault.latency


class MachineChanges:
    """Lets the parts of the machine of a run change at their dates.

    `fails(fault, used)` is called when a host goes off, or a link; `used` if messages are on it.
    `off` has the faults of the links that are off, by name.
    """

    def __init__(
        self,
        simulation: Simulation,
        parts: Sequence[ChangingPart],
        fails: Callable[[Fault, bool], object],
    ) -> None:
        self.simulation = simulation
        self.parts = parts
        self.fails = fails
        self.off: dict[str, Fault] = {}
        self.made = 0  # changes while ranks run
        self._due: set[Process] = set()
        self._links_changed = False

    def begin(self) -> None:
        """The ranks are there, and have not begun."""
        listens = False
        for part in self.parts:
            if part.kind == SPEED:
                pace = self.simulation.paces[part.name] = SpeedProfile(part.course)
                for core in self._cores(part.name):
                    core.pace = pace
            if part.kind in (BANDWIDTH, LATENCY) or (part.kind == LINK_STATE and self._rails()):
                listens = True
            self._next(part, part.course.events())
        if listens:
            self.simulation.universe.listen(self)

    def _next(self, part: ChangingPart, events: Iterator[tuple[float, float]]) -> None:
        """Let the next event of a part happen at its date."""
        found = next(events, None)
        if found is None or found[0] == math.inf:
            return
        time, value = found
        simulation = self.simulation
        if time <= 0.0 and part.kind not in (HOST_STATE, LINK_STATE):
            self._change(part, time, value)
            self._next(part, events)
            return
        place = simulation.universe.processes[0]
        event = Process(simulation.engine, place.pid, place.slot, place.core)

        def happens() -> None:
            self._due.discard(event)
            simulation.engine.now = max(simulation.engine.now, time)
            if not simulation.running or simulation.engine.stopped:
                return
            self._change(part, time, value)
            # Changes alone wake no rank: if nothing else is due, the ranks are in a deadlock.
            if self._others():
                self._next(part, self._later(part, time, events))

        event.resume = happens
        self._due.add(event)
        # As in SimGrid, a change applies to all that begins at its date.
        simulation.engine.queue.push(time * FIRST, event)

    def _others(self) -> bool:
        """Whether anything but changes is due, now or later."""
        engine = self.simulation.engine
        if engine.more_now() or engine.system.pending():
            return True
        return any(event not in self._due for _, event in engine.queue.all())

    def _later(
        self, part: ChangingPart, date: float, events: Iterator[tuple[float, float]]
    ) -> Iterator[tuple[float, float]]:
        """The events of a part, without the many before the next date at which one matters."""
        part.changed += 1
        self.made += 1
        if part.changed % OFTEN or (part.kind == HOST_STATE and self._in_use(part)):
            return events
        engine = self.simulation.engine
        if engine.more_now() or engine.system.pending():
            return events
        other = min(when for when, event in engine.queue.all() if event not in self._due)
        if other < math.inf and not self._in_use(part):
            later = part.course.events(other)
            events = later
            left_out: tuple[float, float] | None = None
            for one in later:
                if one[0] >= other:
                    events = itertools.chain([one], later)
                    break
                if one[0] > date:
                    left_out = one
            if left_out is not None:
                self._change(part, *left_out)
            return events
        others = engine.events - self.made
        part.alone = part.alone + OFTEN if others - part.others < OFTEN // 10 else 0
        part.others = others
        if part.alone >= MOST:
            what = "host" if part.kind in OF_HOSTS else "link"
            raise UsageError(
                f"profile of {what} {part.name!r}: {part.alone:,} changes in a row until {date:g} "
                "s, and nothing else happens; expected a longer time before it repeats"
            )
        return events

    def _in_use(self, part: ChangingPart) -> bool:
        """Whether a change matters to something that is under way."""
        if part.kind == SPEED:
            return any(one.shared and members_of(one.shared) for one in self._cores(part.name))
        if part.kind == HOST_STATE:
            alive = any(rank.host.name == part.name for rank in self.simulation.waiting())
            return alive and part.goes_off
        return bool(self._flows())

    def _change(self, part: ChangingPart, date: float, value: float) -> None:
        if part.kind == SPEED:
            for core in self._cores(part.name):
                self._set_speed(core, value)
        elif part.kind == HOST_STATE:
            if not value:
                self.fails(part.fault(date), False)
        elif part.kind == LINK_STATE:
            if value:
                if self.off.pop(part.name, None) is not None:
                    self._turn(part, False)
            elif part.name not in self.off:
                fault = self.off[part.name] = part.fault(date)
                self._turn(part, True)
                self.fails(fault, any(not self._passes(flow) for flow in self._flows()))
        else:
            self._set_link(part, value)

    # Cores.

    def _cores(self, host: str) -> list[Core]:
        return [core for core in self.simulation.cores.values() if core.host == host]

    def _set_speed(self, core: Core, value: float) -> None:
        """Change the speed of a core, also for those that share it now."""
        core.factor = max(value, STANDSTILL)
        shared = core.shared
        if shared is not None:
            system, speed = self.simulation.engine.system, core.speed * core.factor
            computing = members_of(shared)
            system.set_capacity(shared, speed)
            for activity in computing:
                system.set_bound(activity, speed)

    # Links.

    def flow_started(self, send: Send, now: float) -> None:
        """A message begins to flow; its plan may be of the time before the last change."""
        if not self._links_changed or send.plan is None or send.plan.kind is None:
            return
        plan = self._plan_of(send)
        if (
            plan.bound == send.plan.bound
            and plan.penalty == send.plan.penalty
            and (self._rails() is None or plan.constraints == send.plan.constraints)
        ):
            return
        place = self.simulation.universe.processes[0]
        event = Process(self.simulation.engine, place.pid, place.slot, place.core)

        def happens() -> None:
            self._due.discard(event)
            for flow in self._flows():
                if flow.send is send:
                    self._set_flow(flow, send)

        event.resume = happens
        self._due.add(event)
        self.simulation.engine.queue.push(now, event)

    def _turn(self, part: ChangingPart, off: bool) -> None:
        """A link goes off, or on: messages to come take other rails, or this one again."""
        rails = self._rails()
        if rails is not None and part.link is not None:
            rails.turn(part.link, off)
            self._plan_anew()

    def _passes(self, flow: Flow) -> bool:
        """Whether a message on its way uses no link that is off; it may change to another rail."""
        if self.off.keys().isdisjoint(self.names_of(flow.send)):
            return True
        if not self.carried(flow.send):
            return False
        self._set_flow(flow, flow.send)
        return True

    def carried(self, send: Send) -> bool:
        """Whether another rail carries a message that was to use a link that is off."""
        if self._rails() is None:
            return False
        return self.off.keys().isdisjoint(self._names(send, self._plan_of(send)))

    def _rails(self) -> RailTransport | None:
        """The model of the rails of hosts, if some have several."""
        transport: Any = self.simulation.engine.book.transport
        while transport is not None and not isinstance(transport, RailTransport):
            transport = getattr(transport, "network", None)
        return transport

    def _plan_of(self, send: Send) -> Plan:
        """The plan that a message has now; that of the same rail, if messages take turns."""
        plan: Plan = self._model().plan(*slots_of(send), send.nbytes)
        if plan.turns is not None and send.plan is not None:
            for other in plan.turns.plans:
                if other.constraints == send.plan.constraints:
                    return other
        return plan

    def transport(self) -> Any:
        """The model of the network, without others around it."""
        result: Any = self.simulation.engine.book.transport
        while not hasattr(result, "resource_of"):
            result = result.flows if hasattr(result, "flows") else result.network
        return result

    def names_of(self, send: Send) -> set[str]:
        """The names of the links that a message needs; its acknowledgements may need some."""
        return self._names(send, send.plan)

    def _names(self, send: Send, plan: Plan | None) -> set[str]:
        """The names of the links that a message needs by a plan."""
        transport = self.transport()
        ends = [transport.hosts[slot] for slot in slots_of(send)]
        links = [*transport.platform.way(*ends)]
        if transport.cross_traffic:
            links += transport.platform.way(*reversed(ends))
        if plan is None or ends[0] is ends[1] or all(end.rails is None for end in ends):
            return {link.name for link in links}
        # The rails decide which links it shares; those that nobody shares are in all routes.
        shared = {constraint.name for constraint in plan.constraints}
        return shared | {link.name for link in links if link.sharing != SHARED}

    def _flows(self) -> list[Flow]:
        """The messages on their way."""
        flows: list[Activity] = []
        for _, event in self.simulation.engine.queue.all():
            if isinstance(event, Flow):
                flows.append(event)
            elif isinstance(event, Bundle):
                flows += event.members()
        for bundle in self.simulation.engine.system.fresh:
            flows += bundle.members()
        return [one for one in dict.fromkeys(flows) if isinstance(one, Flow) and not one.removed]

    def _set_link(self, part: ChangingPart, value: float) -> None:
        """Change the bandwidth or the latency of a link, also for messages on their way."""
        transport = self.transport()
        resource = transport.resource_of(part.link)
        if part.kind == BANDWIDTH:
            resource.bandwidth = value
            resource.resistance = transport.weight / value
            self.simulation.engine.system.set_capacity(resource.constraint, value)
        else:
            resource.latency = value
        rails = self._rails()
        if rails is None:
            transport.paths.clear()
        else:
            rails.forget()
        self._plan_anew()
        for flow in self._flows():
            if flow.send.plan is not None and flow.send.plan.kind is not None:
                self._set_flow(flow, flow.send)

    def _plan_anew(self) -> None:
        """Messages to come have other plans than before."""
        self._links_changed = True
        engine = self.simulation.engine
        engine.book = PlanBook(engine.book.transport, len(engine.book.places))

    def _model(self) -> Any:
        """The model that plans messages, which share the memory of nodes or not."""
        model: Any = nodes_of(self.simulation.engine.book.transport)
        if model is None or not model.messages:
            return self._rails() or self.transport()
        return model

    def _set_flow(self, flow: Flow, send: Send) -> None:
        """Give a message on its way the share that it now has of its links."""
        plan = self._plan_of(send)
        old = send.plan
        regulator = None if old is None else old.regulator
        bound = plan.bound if regulator is None else flow.bound
        system = self.simulation.engine.system
        other = self._rails() is not None and flow.constraints != plan.constraints
        if other:
            send.plan = plan
        if flow.penalty != plan.penalty or flow.bound != bound or other:
            system.set_use(flow, plan.penalty, bound, plan.constraints, plan.weights, plan.kind)
        if regulator is not None:
            regulator.changed(flow, plan.bound, system)


def slots_of(send: Send) -> tuple[int, int]:
    """The slots of the sender and of the receiver of a message."""
    context = send.context
    sources = context if context.peer is None else context.peer
    return sources.members[send.source].slot, context.members[send.destination].slot
