"""The judge of a main thread that no longer returns from C.

pysmpi's own waits for the world outside return to Python ten times a second. A rank that waits in a
function of C holds all others, so it waits for ever if only another rank can end its wait. This
ends the run with a report. Other long waits are noted once. A signal ends the run in any case.
"""

from __future__ import annotations

import _thread
import linecache
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from pysmpi import text
from pysmpi.diagnostics import WaitInC
from pysmpi.isolation.kinds.forks import around
from pysmpi.python.frames import CallSite, call_site, is_ours, runs_inside, thread_frame
from pysmpi.reports.exit_status import MPI_ERROR
from pysmpi.reports.whereabouts import whereabouts
from pysmpi.waiting.stalls.kernel_waits import Ender, KernelWait, library_of, wait_of

try:
    from pysmpi.waiting.stalls import watch
except ImportError:  # pysmpi was installed without a C compiler, or not on Linux
    watch = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from pysmpi.mpi.base.ranks import Rank
    from pysmpi.ranks.simulation import Simulation

INTERVAL = 1.0  # (s) between two looks
PATIENCE = {Ender.INSIDE: 10.0, Ender.NEARBY: 30.0}  # (s) of a wait that ends the run
LONG = 60.0  # (s) of a wait that is noted
_FOREVER = 1e9
_FLUSH = 2.0  # (s) for writing out the output of ranks

# The real functions: these are called while a rank waits.
_exit, _write, _get_ident = os._exit, os.write, threading.get_ident
_start, _allocate, _monotonic = _thread.start_new_thread, _thread.allocate_lock, time.monotonic

# Says how a signal ends a command, and the exit status.
Signalled = Callable[[int], tuple[str, int]]


class StallWatch:
    """The context of a simulation whose main thread is watched.

    In a command, `signalled` says how a signal ends it. Otherwise the process belongs to others:
    signals are theirs, and a report does not end it. `end_children` ends the processes of ranks.
    """

    def __init__(
        self,
        simulation: Simulation,
        signalled: Signalled | None,
        end_children: Callable[[], object],
    ) -> None:
        self.simulation = simulation
        self.signalled = signalled
        self.end_children = end_children
        self._main = _get_ident()
        self._noted = False

    def __enter__(self) -> StallWatch:
        self._begin()
        around.append(self._pause)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        around.remove(self._pause)
        self._pause(over=False)

    def _begin(self) -> None:
        if watch is not None:
            with suppress(RuntimeError):  # a run in a run
                watch.start(
                    self.judge, INTERVAL, min(PATIENCE.values()), self.signalled is not None
                )

    def _pause(self, over: bool) -> None:
        """Stop before a fork of a rank, and go on after it: Python warns of other threads."""
        if watch is not None:
            if over:
                self._begin()
            else:
                watch.stop()

    def judge(self, quiet: float, number: int, call: str) -> float:
        """Judge the wait of the main thread; return the seconds after which to do it again."""
        if watch.returned():
            return 0.0
        frame = thread_frame(self._main)
        rank = self._rank(frame)
        if number:
            self._end_by_signal(number, rank, frame, call)
        if rank is None or not self._others(rank):
            return quiet + LONG
        wait = wait_of(watch.thread(), call)
        if wait.ender in PATIENCE:
            if quiet < PATIENCE[wait.ender]:
                return PATIENCE[wait.ender]
            if watch.returned():
                return 0.0
            self._report(rank, frame, wait, library_of(watch.thread(), call), quiet)
            return _FOREVER
        if frame is not None and is_ours(frame.f_code.co_filename):
            return quiet + LONG  # this wait lets others go on, or belongs to a prompt
        if quiet < LONG:
            return LONG
        if not self._noted:
            self._noted = True
            self._say(
                f"pysmpi: rank {rank.pid} has waited in {wait.function}() of C code for "
                f"{text.seconds(round(quiet))}{_at(call_site(frame))}, and all other ranks wait "
                f"for it: {wait.why}"
            )
        return quiet + LONG

    def _rank(self, frame: FrameType | None) -> Rank | None:
        """The rank whose code the main thread runs."""
        process = self.simulation.engine.current
        if process is None or not runs_inside(frame, ("_live", "_live_thread")):
            return None
        return self.simulation.universe.ranks[process.pid]

    def _others(self, rank: Rank) -> bool:
        """Whether there are other ranks, or threads of this one."""
        return self.simulation.running > 1 or bool(self.simulation.threads.get(rank.pid))

    def _report(
        self, rank: Rank, frame: FrameType | None, wait: KernelWait, library: str, quiet: float
    ) -> None:
        site = call_site(frame)
        lines = [
            f"{WaitInC.code} {WaitInC.title}: rank {rank.pid} has waited in {_function(wait)}"
            f"{f' of {library}' if library else ''} for {text.seconds(round(quiet))}, and all "
            "other ranks wait for it"
        ]
        if site is not None:
            source = linecache.getline(site.file, site.line).strip()
            lines.append(f"  at {site}{f': {source}' if source else ''}")
        lines.append(f"  {wait.why}")
        lines.append("  all ranks run in one thread: none runs while C code waits in it")
        lines += self._positions(rank, site).splitlines()[1:]
        lines.append(f"  help: pysmpi explain {WaitInC.code}")
        if self.signalled is None:
            self._say("\n".join(lines))
        else:
            self._end("\n".join(lines), MPI_ERROR)

    def _positions(self, rank: Rank | None, site: CallSite | None) -> str:
        # The end of the run is more important than the positions of the ranks.
        try:
            running = None if rank is None else (rank.pid, site)
            return whereabouts(self.simulation, None, running)
        except Exception:
            return ""

    def _end_by_signal(
        self, number: int, rank: Rank | None, frame: FrameType | None, call: str
    ) -> NoReturn:
        how, status = (f"ended by signal {number}", 128 + number)
        if self.signalled is not None:
            how, status = self.signalled(number)
        site = call_site(frame)
        lines = f"pysmpi: {how} {self._positions(rank, site)}".rstrip()
        if rank is not None:
            wait = wait_of(watch.thread(), call)
            lines += (
                f"\n  rank {rank.pid} did not return from {_function(wait)} of C code{_at(site)}"
                f"{', and all other ranks wait for it' if self._others(rank) else ''}"
            )
        self._end(lines, status)

    def _end(self, report: str, status: int) -> NoReturn:
        done = _allocate()
        done.acquire()
        _start(self._write_out, (done,))
        done.acquire(timeout=_FLUSH)  # whoever waits in a stream holds its lock
        self._say(report)
        with suppress(BaseException):
            self.end_children()
        _exit(status)

    def _write_out(self, done: Any) -> None:
        """Write out the output of ranks, and take the caller's streams again."""
        try:
            for stream in (sys.stdout, sys.stderr):
                with suppress(Exception):
                    stream.flush()
            with suppress(Exception):
                self.simulation.door.leave()
        finally:
            done.release()

    def _say(self, message: str) -> None:
        with suppress(OSError):
            _write(2, f"{message}\n".encode(errors="backslashreplace"))


def _function(wait: KernelWait) -> str:
    return wait.function if " " in wait.function else f"{wait.function}()"


def _at(site: CallSite | None) -> str:
    return "" if site is None else f" at {site}"
