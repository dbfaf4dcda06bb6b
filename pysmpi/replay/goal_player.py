"""Players of schedules in the format GOAL: they give the kernel operations that may begin."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from pysmpi.kernel.core import Core
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import Context, KernelRequest, Receive, Send
from pysmpi.kernel.schedule import Schedule
from pysmpi.replay.goal_schedule import CALC, SEND, GoalSchedule

NANOSECOND: Final = 1e-9


class GoalInstance:
    """One replayed schedule: the players of its ranks."""

    def __init__(self, name: str, begin: float, schedules: Sequence[GoalSchedule]) -> None:
        self.name = name
        self.begin = begin
        self.size = len(schedules)
        self.schedules = schedules
        self.players: list[GoalRank] = []

    def cast(self, processes: Sequence[Process], number: int) -> None:
        """Make the players of the ranks; `number` is that of the context of their messages."""
        context = Context(number, list(processes))
        for rank, (schedule, process) in enumerate(zip(self.schedules, processes)):
            self.players.append(GoalRank(self, rank, schedule, process, context))
        for player in self.players:
            player.start(self.begin)


class GoalRank:
    """Executes the operations of a rank as soon as those that they require allow it."""

    def __init__(
        self,
        instance: GoalInstance,
        rank: int,
        schedule: GoalSchedule,
        process: Process,
        context: Context,
    ) -> None:
        self.instance = instance
        self.rank = rank
        self.schedule = schedule
        self.process = process
        self.context = context
        self.missing = list(schedule.missing)
        self.left = len(schedule)
        self.date = instance.begin
        self.open: set[int] = set()  # messages that have begun
        self.cpus: dict[int, GoalCpu] = {}
        self._watchers: list[Process] = []  # that wait for no message

    @property
    def done(self) -> bool:
        """Whether all operations have ended."""
        return self.left == 0

    def where(self) -> str:
        """The file and line of an operation that has not ended, a begun one if there is one."""
        lines = self.schedule.lines
        number = min(self.open, default=None)
        if number is None:
            number = next(i for i, missing in enumerate(self.missing) if missing)
        return f"{self.instance.name}, {self.schedule.unit} {lines[number]}"

    def start(self, seconds: float) -> None:
        """Begin at a date."""
        for number, missing in enumerate(self.missing):
            if not missing:
                self.cpu(number).ready.append((number, None))
        for cpu in self.cpus.values():
            cpu.start(seconds)

    def cpu(self, number: int) -> GoalCpu:
        """The processor of an operation."""
        index = self.schedule.cpus[number]
        found = self.cpus.get(index)
        if found is None:
            main = self.process
            if not self.cpus:
                process = main
            else:
                core = Core(main.core.speed, main.core.host, main.core.number)
                core.residents = 1
                process = Process(main.engine, main.pid, main.slot, core)
            found = self.cpus[index] = GoalCpu(self, process)
        return found

    def begun(self, number: int, request: KernelRequest) -> None:
        """A message has begun."""
        self.open.add(number)
        self._release(self.schedule.after_start.get(number))
        if request.done:
            self.arrived(number, request)
            return
        # A process in the background waits, so that the processor goes on.
        main = self.process
        watcher = (
            self._watchers.pop()
            if self._watchers
            else Process(main.engine, main.pid, main.slot, main.core)
        )

        def ended() -> None:
            self._watchers.append(watcher)
            self.arrived(number, request)

        watcher.resume = ended
        watcher.waits = [request]
        watcher.all = False
        watcher.launch()

    def arrived(self, number: int, request: KernelRequest) -> None:
        """A message is complete; the processor still pays for its end."""
        if request.finish_cost > 0.0:
            self.cpu(number).add(number, request)
        else:
            self.ended(number)

    def ended(self, number: int) -> None:
        """An operation has ended."""
        self.open.discard(number)
        self.left -= 1
        if not self.left:
            self.date = self.process.engine.now
        self._release(self.schedule.after_end.get(number))

    def _release(self, numbers: list[int] | None) -> None:
        for number in numbers or ():
            self.missing[number] -= 1
            if not self.missing[number]:
                self.cpu(number).add(number, None)


class GoalCpu:
    """Executes operations of one processor of a rank, in the order in which they may begin."""

    def __init__(self, rank: GoalRank, process: Process) -> None:
        self.rank = rank
        self.process = process
        # Operations to begin, and requests whose end is to be paid for.
        self.ready: deque[tuple[int, KernelRequest | None]] = deque()
        self.idle = True
        self._current: tuple[int, KernelRequest | None, bool] | None = None
        process.resume = self.go_on

    def start(self, seconds: float) -> None:
        """Begin at a date."""
        self.idle = False
        if seconds > self.process.engine.now:
            self.process.follow([self.process.engine.alarm(seconds)])
        else:
            self.process.launch()

    def add(self, number: int, request: KernelRequest | None) -> None:
        """An operation may begin, or its message is complete."""
        self.ready.append((number, request))
        if self.idle:
            self.idle = False
            self._next()

    def go_on(self) -> None:
        """The kernel has executed the current operation."""
        current, self._current = self._current, None
        if current is not None:
            number, request, ends = current
            if ends or request is None:
                self.rank.ended(number)
            else:
                self.rank.begun(number, request)
        self._next()

    def _next(self) -> None:
        """Load the process with the next operation."""
        if not self.ready:
            self.idle = True
            return
        number, request = self.ready.popleft()
        rank, process = self.rank, self.process
        schedule = rank.schedule
        amount = schedule.amounts[number]
        if request is not None:
            process.waits = [request]
            process.all = True
            self._current = number, request, True
        elif schedule.kinds[number] == CALC:
            steps = Schedule()
            if amount:
                steps.compute(amount * NANOSECOND * process.core.speed)
            process.prepare(steps, rank.context, rank.rank, 0)
            self._current = number, None, True
        else:
            peer, tag = schedule.peers[number], schedule.tags[number]
            started: Send | Receive
            if schedule.kinds[number] == SEND:
                started = Send(rank.context, rank.rank, peer, tag, amount)
                started.immediate = True
            else:
                started = Receive(rank.context, peer, rank.rank, tag, amount)
            process.starts = [started]
            process.next_start = 0
            process.paid = False
            started.expect(process)
            self._current = number, started, False
        process.launch()
