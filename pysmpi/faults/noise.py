"""Noise of the machine: detours of cores, and messages that are late or lost.

Times are exponentially distributed around their mean, if not said otherwise, and depend on
`--seed`. A lost message is sent again after a timeout, which doubles with each further loss of the
same message, as TCP does it (RFC 6298).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

from pysmpi.faults.changes import slots_of
from pysmpi.faults.specification import Detours, Drops, Jitter, Noise
from pysmpi.kernel.core import Core, Interruptions
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import KernelRequest, Send
from pysmpi.ranks.simulation import Simulation


class RandomDetours(Interruptions):
    """A core leaves its work at random times for random times, of several kinds.

    The time from one detour of a kind to the next is that of work without any detours.
    """

    def __init__(self, kinds: Sequence[tuple[Detours, Random]]) -> None:
        super().__init__()
        self._kinds = kinds
        self._left = [random.expovariate(one.rate) for one, random in kinds]

    def seconds(self, work: float) -> float:
        """See `Interruptions.seconds`."""
        lost, left = 0.0, self._left
        for at, (detours, random) in enumerate(self._kinds):
            time = left[at]
            while time < work:
                if detours.constant:
                    lost += detours.seconds
                else:
                    lost += random.expovariate(1.0 / detours.seconds)
                time += random.expovariate(detours.rate)
            left[at] = time - work
        return lost


class LateMessages:
    """Lets messages between hosts be late, or be lost and sent again."""

    def __init__(self, kinds: Sequence[Jitter | Drops], simulation: Simulation, seed: int) -> None:
        self._kinds = kinds
        self._simulation = simulation
        self._random = Random(f"messages {seed}")
        self._under_way: Counter[str] = Counter()  # to each host

    def _ends(self, send: Send) -> tuple[str, str]:
        """The hosts of the sender and the receiver."""
        source, target = slots_of(send)
        slots = self._simulation.slots
        return slots[source].host.name, slots[target].host.name

    def request_started(self, request: KernelRequest, process: Process, now: float) -> None:
        """Give a message that begins its additional latency."""
        if not isinstance(request, Send) or request.plan is None:
            return
        source, target = self._ends(request)
        if source == target:
            return
        late = sum(self._late(kind, target) for kind in self._kinds)
        if late > 0.0:
            request.plan = request.plan.late(late)

    def _late(self, kind: Jitter | Drops, target: str) -> float:
        random = self._random
        if isinstance(kind, Jitter):
            if kind.rate < 1.0 and random.random() >= kind.rate:
                return 0.0
            return random.expovariate(1.0 / kind.seconds)
        if self._under_way[target] < kind.queue:
            return 0.0
        late, timeout = 0.0, kind.timeout
        while random.random() < kind.rate:
            late += timeout
            timeout *= 2.0
        return late

    def flow_started(self, send: Send, now: float) -> None:
        """A message is on its way."""
        self._under_way[self._ends(send)[1]] += 1

    def flow_ended(self, send: Send, now: float) -> None:
        """A message has arrived."""
        self._under_way[self._ends(send)[1]] -= 1


def begin_noise(noise: Sequence[Noise], simulation: Simulation, seed: int) -> None:
    """Let the cores and the messages of a simulation be noisy."""
    detours = [(number, one) for number, one in enumerate(noise) if isinstance(one, Detours)]
    if detours:

        def disturb(core: Core) -> None:
            core.interruptions = RandomDetours(
                [
                    (one, Random(f"detours {seed}/{number}/{core.host}/{core.number}"))
                    for number, one in detours
                ]
            )

        simulation.noisy = disturb  # cores of ranks that are spawned later
        for core in simulation.cores.values():
            disturb(core)
    messages = [one for one in noise if not isinstance(one, Detours)]
    if messages:
        simulation.universe.listen(LateMessages(messages, simulation, seed))
