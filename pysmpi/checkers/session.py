"""A session: the checkers of one run, their shared state, and their findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pysmpi.checkers.base import Checker
from pysmpi.checkers.context import CheckContext
from pysmpi.checkers.registry import Exemption
from pysmpi.kernel.requests import KernelRequest
from pysmpi.mpi.calls import MpiCall
from pysmpi.mpi.point_to_point.polling import MOST
from pysmpi.ranks.instruments import Instrument, InstrumentedRun
from pysmpi.ranks.outcomes import RankState
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.exit_status import MPI_ERROR
from pysmpi.reports.findings import Finding, joined, report
from pysmpi.reports.result import Result
from pysmpi.reports.waiting import ORIGINS, RequestOrigins

_MOST_POLLS = 20_000  # failed tests in a row that are a livelock: observed calls are slow


# Judges the findings of a run.
Judge = Callable[[Any, Result, Sequence[Finding]], list[Finding]]


class CheckSession(Instrument, RequestOrigins):
    """The checkers of one run.

    `judge` decides about findings that may make no difference; without it, doubtful ones are
    dropped. `started_by(request)` is the call that started a request of the kernel, while it is
    under way.
    """

    run: InstrumentedRun

    def __init__(
        self,
        checkers: Sequence[Checker],
        judge: Judge | None = None,
        exemptions: Sequence[Exemption] = (),
    ) -> None:
        self.checkers = list(checkers)
        self.judge = judge
        self.exemptions = exemptions
        self.simulation: Simulation | None = None
        self.context = context = CheckContext()
        for one in checkers:
            one.session = context
        context.pending.watchers = [one for one in self.checkers if one.needs_pending]
        timed = any(one.needs_clocks for one in self.checkers)
        context.listeners = [
            *([context.clocks] if timed else ()),
            *([context.pending] if context.pending.watchers else ()),
            *self.checkers,
        ]

    @property
    def findings(self) -> list[Finding]:
        """The problems of the run so far."""
        return self.context.findings

    def prepare(self, run: InstrumentedRun) -> None:
        """Let each rank have its own order of sets, as processes do."""
        self.run = run
        run.own_orders = True

    def attach(self, run: InstrumentedRun) -> None:
        """Begin to check."""
        simulation = self.simulation = run.simulation
        if simulation.watch.most == MOST:
            simulation.watch.most = _MOST_POLLS
        ORIGINS.put(simulation.universe, self)
        self.context.universe = simulation.universe
        for one in self.checkers:
            one.begin(simulation)
        for listener in self.context.listeners:
            simulation.listen(listener, calls=False)
        simulation.listen(self.context)

    def close(self, error: BaseException | None) -> None:
        """Stop checking, and release what the checkers remember."""
        for one in self.checkers:
            one.close()
        if self.simulation is not None:
            for listener in [self.context, *self.context.listeners]:
                self.simulation.universe.ignore(listener)
        self.checkers = []
        self.context.forget()

    def finish(self, result: Result) -> None:
        """Add the findings to the result: the report, and the exit status."""
        findings = self._conclusions(result.deadlock is not None)
        if self.judge is not None and any(one.match is not None for one in findings):
            findings = self.judge(self.run, result, findings)
        else:
            findings = [one for one in findings if not one.doubtful]
        result.findings = findings
        if not findings:
            return
        parts = [report(findings)]
        if result.error:
            parts.append(result.error.rstrip("\n"))
        result.error = "\n".join(parts)
        if any(finding.error for finding in findings):
            result.exit_status = result.exit_status or MPI_ERROR

    def _conclusions(self, deadlocked: bool) -> list[Finding]:
        """The findings of a run; a problem of several ranks at one line is one finding."""
        simulation, context = self.simulation, self.context
        context.deadlocked = deadlocked
        if simulation is not None:
            outcomes = simulation.outcomes
            context.clean = (
                simulation.universe.aborted is None
                and all(outcome.state is RankState.FINISHED for outcome in outcomes)
                and simulation.hard_exit is None
            )
            for one in self.checkers:
                one.finish(simulation)
        findings = context.findings
        # Ranks that make different collective calls may wait for each other because of that.
        if any(one.kind.code == "PSM111" for one in findings):
            findings = [one for one in findings if one.kind.code != "PSM122"]
        context.findings = [
            one for one in joined(findings) if not any(e.holds(one) for e in self.exemptions)
        ]
        return context.findings

    def started_by(self, request: KernelRequest) -> MpiCall | None:
        """The call that started a request, if it is under way."""
        return self.context.starts.get(request)

    def prepared_by(self, call: MpiCall, request: KernelRequest | None) -> MpiCall:
        """The call that made a persistent request which `call` starts; for others `call` itself."""
        return self.context.prepared_by(call, request)
