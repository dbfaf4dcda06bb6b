"""The prompt: pdb, with commands to look at other ranks and at messages.

The frames of pysmpi are hidden. Expressions are evaluated as the chosen rank: `comm.rank` is its
rank, and `sys.stdout` its stream.
"""

from __future__ import annotations

import pdb
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from greenlet import getcurrent

from pysmpi import text
from pysmpi.kernel.matching import ANY, mailboxes_of
from pysmpi.mpi.base.ranks import Rank
from pysmpi.python.frames import is_ours, shorten, suspended_frame, trace_stack
from pysmpi.ranks.outcomes import RankState
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.deadlock import describe
from pysmpi.reports.waiting import WaitFinder
from pysmpi.text import whole

_MOST_MESSAGES = 50  # lines of `queue`


class Prompt(pdb.Pdb):
    """The debugger of all ranks of a simulation; `here` is the rank in which it stopped.

    After `interaction`, `wish` is the next action: "continue", "message", "message all", "quit", or
    "line" if a command of pdb such as `next` wants to follow lines. `back` is a number of calls.
    """

    def __init__(
        self,
        simulation: Simulation,
        here: Rank | None,
        go_on: Callable[[Prompt], object],
        *,
        streams: tuple[Any, Any] = (None, None),
    ) -> None:
        super().__init__(stdin=streams[0], stdout=streams[1], nosigint=True)
        self.go_on = go_on  # called after each interaction
        self.following = False
        self.simulation = simulation
        self.here = self.shown = here
        self.wish = "line"
        self.back = 0
        self._name()

    def _name(self) -> None:
        rank = self.shown
        self.prompt = "(pysmpi) " if rank is None else f"(pysmpi, rank {rank.pid}) "

    def get_stack(
        self, f: FrameType | None, t: TracebackType | None
    ) -> tuple[list[tuple[FrameType, int]], int]:
        """The frames of the program only."""
        stack, index = super().get_stack(f, t)
        kept = [entry for entry in stack if not is_ours(entry[0].f_code.co_filename)]
        return (kept, len(kept) - 1) if kept else (stack, index)

    @contextmanager
    def as_rank(self, rank: Rank | None) -> Iterator[None]:
        """Inside it, the running code is that of a rank."""
        fiber: Any = getcurrent()
        exchange = self.simulation.door.exchange
        if rank is None or rank.program is None or exchange is None:
            yield
            return
        before, state = getattr(fiber, "rank", None), exchange.shown
        fiber.rank = rank
        exchange.show(rank.program.state)
        try:
            yield
        finally:
            exchange.show(state)
            if before is None:
                del fiber.rank
            else:
                fiber.rank = before

    def onecmd(self, line: str) -> bool:
        """Run a command as the rank that is shown; its output is that of the terminal."""
        if self.shown is self.here:
            return super().onecmd(line)
        with self.as_rank(self.shown):
            return super().onecmd(line)

    # Ranks

    def _places(self) -> Iterator[tuple[Rank, str, str]]:
        """Each rank with its state and its line."""
        simulation = self.simulation
        finder = WaitFinder(simulation)
        for rank in simulation.universe.ranks:
            outcome = simulation.outcomes[rank.pid]
            if outcome.state is not RankState.RUNNING or rank.fiber is None:
                begun = outcome.state is not RankState.RUNNING
                yield rank, outcome.state.value if begun else "has not begun", ""
            elif rank is self.here:
                frame, line = self.get_stack(*self.origin)[0][-1]
                yield rank, "here", f"{shorten(frame.f_code.co_filename)}:{line}"
            else:
                waits = finder.waits(rank)
                if not waits:
                    yield rank, "has not begun", ""
                    continue
                wait = waits[0]
                site = "" if wait.site is None else str(wait.site)
                yield rank, f"in {describe([wait])}", site

    def do_ranks(self, arg: str) -> None:
        """ranks
        List all ranks: the call in which each waits, and its line."""
        rows = [(rank, what, place) for rank, what, place in self._places()]
        width = min(60, max((len(what) for _, what, _ in rows), default=0))
        for rank, what, place in rows:
            mark = "->" if rank is self.shown else "  "
            clock = self.simulation.engine.now + rank.process.debt
            self.message(
                f"{mark} rank {rank.pid}  {text.seconds(clock)}  {what.ljust(width)}  {place}"
            )

    def do_rank(self, arg: str) -> None:
        """rank N
        Look at rank N: its stack, its variables, its modules."""
        ranks = self.simulation.universe.ranks
        number = whole(arg.strip())
        if number is None or number >= len(ranks):
            self.error(f"expected the number of a rank below {len(ranks)}, got {arg!r}")
            return
        rank = ranks[number]
        frame = self._frame(rank)
        if frame is None and rank is not self.here:
            self.error(f"rank {rank.pid} has no stack: it has ended, or has not begun")
            return
        self.shown = rank
        self._name()
        if rank is self.here:
            self.setup(*self.origin)
        else:
            self.setup(frame, None)
        self.print_stack_entry(self.stack[self.curindex])

    def _frame(self, rank: Rank) -> FrameType | None:
        return None if rank.fiber is None else suspended_frame(rank.fiber)

    def do_where(self, arg: str) -> None:
        """where [all]
        Print the stack of the rank that is shown, or of all ranks."""
        if arg.strip() != "all":
            super().do_where(arg)
            return
        for rank, what, _ in self._places():
            self.message(f"rank {rank.pid} {what}")
            start = self.origin if rank is self.here else (self._frame(rank), None)
            if start != (None, None):
                for entry in self.get_stack(*start)[0]:
                    self.message(f"  {self.format_stack_entry(entry, ' ')}")

    do_w = do_bt = do_where

    def do_queue(self, arg: str) -> None:
        """queue
        List messages that were sent and have no receive, and receives without a message."""
        finder = WaitFinder(self.simulation)
        lines: list[str] = []
        for communicator in finder.communicators:
            context = communicator.p2p
            name = f" on communicator {context.number}" if context.number > 1 else ""
            sources = finder.sources(context)
            for destination, box in mailboxes_of(context).items():
                pid = context.members[destination].pid
                for send in box.waiting():
                    lines.append(
                        f"rank {sources[send.source]} has sent to rank {pid}: tag {send.tag}, "
                        f"{text.count(send.nbytes, 'byte')}{name}"
                    )
                for receive in box.posted():
                    source = "any rank" if receive.source == ANY else sources[receive.source]
                    tag = "any tag" if receive.tag == ANY else f"tag {receive.tag}"
                    lines.append(f"rank {pid} receives from {source}: {tag}{name}")
        for line in lines[:_MOST_MESSAGES]:
            self.message(line)
        if not lines:
            self.message("no message waits for a receive, and no receive for a message")
        elif len(lines) > _MOST_MESSAGES:
            self.message(f"... {len(lines) - _MOST_MESSAGES} more")

    # Going on

    def do_continue(self, arg: str) -> bool | None:
        """continue
        Run to the next breakpoint."""
        self.wish = "continue"
        self.set_continue()
        return True

    do_c = do_cont = do_continue

    def do_message(self, arg: str) -> bool | None:
        """message [all]
        Run to the next MPI call of this rank, or of any rank."""
        self.wish = "message all" if arg.strip() == "all" else "message"
        self.set_continue()
        return True

    do_m = do_message

    def do_back(self, arg: str) -> bool | None:
        """back [N]
        Go back N MPI calls (1): the program runs again from its beginning, up to there."""
        if arg.strip() and whole(arg.strip()) is None:
            self.error(f"expected a number of calls, got {arg!r}")
            return None
        self.back = int(arg or "1")
        self.wish = "back"
        self.set_continue()
        return True

    def do_quit(self, arg: str) -> bool | None:
        """quit
        End the run."""
        self.wish = "quit"
        self.set_continue()
        return True

    do_q = do_exit = do_quit

    def do_EOF(self, arg: str) -> bool | None:
        """The end of the input: continue."""
        self.message("")
        return self.do_continue(arg)

    def ask(self, frame: FrameType | None, trace: TracebackType | None) -> None:
        """Show the prompt at a frame, or at the end of a traceback."""
        self.reset()
        self.interaction(frame, trace)

    def interaction(self, frame: Any, tb_or_exc: Any) -> None:
        """Take commands, then go on as they ask."""
        self.origin = frame, tb_or_exc
        self.shown = self.here if self.here is not None else self.shown
        self._name()
        self.wish = "line"
        super().interaction(frame, tb_or_exc)
        if self.wish == "line" and frame is not None and not self.following:
            self._follow(frame)
        self.following = self.wish == "line"
        self.go_on(self)

    def _follow(self, frame: FrameType | None) -> None:
        """Trace the lines of the running rank, for a command of pdb."""
        outermost = trace_stack(frame, self.trace_dispatch)
        if outermost is not None:
            self.botframe = outermost
        sys.settrace(self.trace_dispatch)
