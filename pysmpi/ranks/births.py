"""The begin of ranks and their threads: processes, fibers, and the frames below them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from greenlet import GreenletExit, getcurrent

from pysmpi.isolation.kinds.tools import Named, begin_fiber
from pysmpi.kernel.core import Core, Pace
from pysmpi.kernel.numbers import shared
from pysmpi.kernel.plan import PlanBook, Transport
from pysmpi.kernel.process import Process
from pysmpi.machine import UNKNOWN_SPEED
from pysmpi.memory.bandwidth import share_memory
from pysmpi.mpi.base.ranks import Fiber, Lifecycle, Rank, World, current
from pysmpi.platform.placement import Slot
from pysmpi.ranks import address_space
from pysmpi.ranks.ends import RankEnds
from pysmpi.ranks.outcomes import UNDER_WAY, RankEvent
from pysmpi.ranks.switching import beginning, keeper, switcher, waiting
from pysmpi.time.cpu_time import OTHER_THREADS
from pysmpi.time.paced import PacedTimer


class RankBirths(RankEnds):
    """Starts ranks, and threads of ranks."""

    def __init__(self, transport: Transport, slots: Sequence[Slot]) -> None:
        super().__init__(transport, slots)
        self.cores: dict[Slot, Core] = {}
        self.paces: dict[str, Pace] = {}  # of hosts whose speed changes, by name
        self.noisy: Callable[[Core], object] | None = None  # interrupts a core
        self.hub = getcurrent()
        self._wait = self.hub.switch
        self._first_wait = waiting(self._wait)
        self._to_begin = self._begin
        self._named = Named(self._live, beginning)
        self.space: address_space.AddressSpace | None = None  # if it is limited
        self._started = 0  # ranks, then

    def limit_memory(self, space: address_space.AddressSpace | None) -> None:
        """Look at the memory that is left from time to time, and end the run before it ends."""
        self.space = space
        if space is not None:
            self.engine.listeners.add(self)

    def ticked(self) -> None:
        """Look at the memory that is left."""
        assert self.space is not None
        self.space.check(self._started, len(self.universe.ranks))

    def add_world(self, slots: Sequence[int], lifecycle: Lifecycle) -> World:
        """Start a world with a rank on each of `slots`; `lifecycle` gives each its program.

        They begin when the engine continues. A rank that has not begun is little more than its
        kernel process.
        """
        universe = self.universe
        world = World(universe, len(universe.ranks), len(slots))
        world.lifecycle = lifecycle
        world.begin = self.engine.now
        for slot in slots:
            self._add_rank(world, slot)
        for process in universe.processes[world.first :]:
            process.launch()
        return world

    def slots_for(self, slots: Sequence[Slot]) -> list[int]:
        """The slot numbers of some places; new places get new numbers.

        The creator of the transport first extends the transport's list of hosts.
        """
        numbers = {other: number for number, other in enumerate(self.slots)}
        before = len(self.slots)
        for slot in slots:
            if slot not in numbers:
                numbers[slot] = len(self.slots)
                self.slots.append(slot)
        if len(self.slots) > before:
            # The numbers of plans depend on the number of slots.
            self.engine.book = PlanBook(self.engine.book.transport, len(self.slots))
        return [numbers[slot] for slot in slots]

    def _add_rank(self, world: World, slot: int) -> None:
        universe = self.universe
        pid = len(universe.ranks)
        host_core = self.slots[slot]
        process = Process(self.engine, pid, slot, self._core(host_core))
        process.core.residents += 1
        process.resume = self._to_begin
        process.suspend = self._wait
        rank = Rank(shared(pid), world, process)
        rank.host, rank.core_number = host_core.host, host_core.core
        universe.processes.append(process)
        universe.ranks.append(rank)
        self.outcomes.append(UNDER_WAY)
        self.running += 1

    def _begin(self) -> Any:
        """Start the rank of a process that runs for the first time."""
        current = self.engine.current
        assert current is not None
        rank = self.universe.ranks[current.pid]
        if self.space is not None:
            if self._started % address_space.EVERY == 0:
                self.space.check(self._started, len(self.universe.ranks))
            self._started += 1
        process = rank.process
        rank.world.lifecycle.equip(rank)
        if process.core.changes() and rank.timer is not None:
            rank.timer = PacedTimer(rank.timer, rank)
        # Calls from Python to Python take no C stack, which each switch of ranks copies.
        fiber = rank.fiber = self._fiber(rank, process, self._named.of(rank.pid))
        # A greenlet keeps the arguments of its function, so it has none.
        switch = process.resume = fiber.switch
        switched = switch()
        if process.suspend is self._first_wait:
            process.suspend = self._wait
        return switched

    def _core(self, slot: Slot) -> Core:
        core = self.cores.get(slot)
        if core is None:
            speed = slot.host.speed or UNKNOWN_SPEED
            core = self.cores[slot] = Core(speed, slot.host.name, slot.core)
            core.pace = self.paces.get(core.host)
            if self.noisy is not None:
                self.noisy(core)
            share_memory(core, slot, self.engine.book.transport)
        return core

    def _fiber(self, rank: Rank, process: Process, body: Callable[..., object]) -> Fiber:
        fiber = Fiber(body, self.hub)
        fiber.rank = rank
        fiber.process = process
        fiber.gate = fiber.record = None
        fiber.state = None if rank.program is None else rank.program.state
        process.suspend = self._first_wait
        return fiber

    def _live(self) -> None:
        rank = current()
        self.door.enter()
        try:
            begin_fiber()
            rank.leave()
            # Each rank that waits has this frame: few variables, and no function in between.
            try:
                value = rank.world.lifecycle.begin(rank)()
            except BaseException as error:
                rank.world.lifecycle.end(rank, error)
                raise
            rank.world.lifecycle.end(rank, None)
            self.outcome(rank).value = value
            self.outcome(rank).undergo(RankEvent.RETURNS)
        except BaseException as error:
            self._failed(rank, error)
        finally:
            self._leave(rank)

    def start_thread(
        self, rank: Rank, body: Callable[[], object], ended: Callable[[], object] | None = None
    ) -> Fiber:
        """Start a thread of `rank`: a separate fiber that shares the rank's core.

        `ended()` is called in the thread when the time of its compute has passed.
        """
        rank.settle()
        main = rank.fiber.process
        threads = self.threads.get(rank.pid)
        if threads is None:
            threads = self.threads[rank.pid] = []
            main.resume = switcher(rank, main, rank.fiber)
            main.suspend = keeper(rank, rank.fiber, main.suspend)
        process = Process(self.engine, rank.pid, main.slot, main.core)
        live = beginning(lambda: self._live_thread(rank, fiber, body, ended))
        fiber = self._fiber(rank, process, live)
        process.resume = switcher(rank, process, fiber)
        process.suspend = keeper(rank, fiber, process.suspend)
        process.core.residents += 1
        threads.append(fiber)
        OTHER_THREADS.of(rank).living.append(process)
        process.launch()
        return fiber

    def _live_thread(
        self,
        rank: Rank,
        fiber: Fiber,
        body: Callable[[], object],
        ended: Callable[[], object] | None,
    ) -> None:
        self.door.enter()
        rank.record = None
        try:
            rank.leave()
            body()
        except GreenletExit:
            pass
        finally:
            try:
                if not self.engine.stopped and type(rank) is Rank:
                    rank.enter().finish_compute()
            except GreenletExit:
                pass  # the rank ends before
            finally:
                if ended is not None:
                    ended()
                self._thread_ended(rank, fiber)
