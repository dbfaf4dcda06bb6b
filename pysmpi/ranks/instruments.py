"""Instruments: whatever listens to a run or changes it.

A run has a list of instruments, and calls their methods in this order:

| method | when |
| --- | --- |
| `prepare(run)` | before the simulation exists: to open files, or to choose other times |
| `attach(run)` | `run.simulation` exists, and no rank |
| events | until all ranks have ended |
| `finish(result)` | the run is over, and the result can be completed; in reverse order |
| `close(error)` | at the end, also after an error, if `prepare` has returned; in reverse order |

An event is a method that an instrument may have. `kernel/listeners.py` lists the events of
messages, waits and calls; an event for which no instrument has a method costs at most one test.
These events are of ranks and of all MPI calls of the program:

| event | arguments | when |
| --- | --- | --- |
| `ranks_ready` | simulation | the ranks exist, and the first is about to begin |
| `timer_for` | rank, timer | a rank is about to begin; returns its timer, in place of `timer` |
| `thread_begun` | rank | a rank or a thread of it begins; called in its greenlet |
| `rank_failed` | rank, error | an exception ends the program of a rank; called in the rank |
| `rank_ended` | rank | a rank and its threads have ended |
| `deadlock_reached` | simulation | no rank can go on; see `Instrument` |
| `call_made` | call | the program has entered an MPI call, also a local one |
| `call_returned` | call, result | the call returns this |
| `call_failed` | call, error | the call raises this exception |
| `call_left` | call | the call is over, in either way, or because its rank ends |
| `run_ended` | result | the ranks have ended, and the process is still that of the run |
"""

from __future__ import annotations

from typing import Any, Protocol

from pysmpi.isolation.loading.loader import RankProgram
from pysmpi.kernel.plan import Transport
from pysmpi.machine import Machine
from pysmpi.platform.model import Platform
from pysmpi.platform.placement import Slot
from pysmpi.ranks.simulation import Simulation
from pysmpi.time.timing import ComputeTiming


class InstrumentedRun(Protocol):
    """A run, as its instruments see it. `options` is a `pysmpi.Options`."""

    program: RankProgram
    options: Any
    machine: Machine
    platform: Platform
    slots: list[Slot]  # of the ranks
    compute: str | float
    command: str | None  # that repeats the run
    simulation: Simulation  # from `attach` on
    transport: Transport | None  # of messages, in place of that of the machine
    own_orders: bool  # whether sets have an order of each rank

    def machine_transport(self) -> Transport:
        """A new transport of the machine."""
        ...

    def time_with(self, timing: ComputeTiming) -> None:
        """Take the times of compute from `timing`; for `prepare`."""
        ...


class Instrument:
    """The base class of instruments; its methods do nothing.

    A subclass overrides those that it needs, and adds methods with the names of events. A `result`
    is a `pysmpi.Result`.

    `deadlock_reached(simulation)` may let ranks go on. It returns True if the run goes on, False if
    it ends, and None to leave this to the instruments behind it.
    """

    def prepare(self, run: InstrumentedRun) -> None:
        """Prepare for a run. Raises UsageError if that is not possible."""

    def attach(self, run: InstrumentedRun) -> None:
        """The simulation exists. Events follow."""

    def finish(self, result: Any) -> None:
        """The run is over: complete its result."""

    def close(self, error: BaseException | None) -> None:
        """Release files and the like. `error` has ended the run, or is None."""
