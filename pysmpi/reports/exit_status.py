"""The exit status of a job, and the report of errors in its ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pysmpi import diagnostics, text
from pysmpi.errors import UsageError
from pysmpi.isolation.program_errors import (
    EARLY,
    format_errors,
    format_internal,
    internal_error,
)
from pysmpi.mpi.base.constants import ERR_TRUNCATE
from pysmpi.mpi.base.exceptions import Exception as MPIException
from pysmpi.mpi.base.options import ENVIRONMENT
from pysmpi.ranks.outcomes import Outcome, RankState
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.deadlock import DeadlockError, DeadlockReport

if TYPE_CHECKING:
    from pysmpi.diagnostics import Diagnostic
    from pysmpi.mpi.base.ranks import Rank
    from pysmpi.python.frames import CallSite

# Exit statuses; others are the program's own.
ERROR, USAGE, MPI_ERROR, INTERRUPTED = 1, 2, 3, 130


def exit_status(
    simulation: Simulation, outcomes: Sequence[Outcome], deadlock: DeadlockReport | None
) -> tuple[int, str | None]:
    """The exit status and the report, None if all went well.

    A deadlock that was raised in the ranks and not caught is reported once, not for each rank.
    """
    failed = [
        (pid, outcome.error)
        for pid, outcome in enumerate(outcomes)
        if outcome.state is RankState.FAILED and outcome.error is not None
    ]
    if simulation.refused is not None:
        return USAGE, f"pysmpi: error: {simulation.refused}"
    if failed:
        for _, error in failed:
            if isinstance(error, UsageError):
                return USAGE, f"pysmpi: error: {error}"
        for pid, error in failed:
            bug = internal_error(error)
            if bug is not None:
                return bug.exit_status, format_internal(bug, f"rank {pid}")
        return _failure(simulation, failed)
    if simulation.aborted is not None and simulation.abort_rank is not None:
        return _abort(simulation)
    if simulation.hard_exit is not None:
        return _hard_exit(simulation.hard_exit)
    if deadlock is not None:
        return MPI_ERROR, str(deadlock)
    shown = EARLY.of(simulation.universe).pids
    messages = [
        f"rank {pid}: {outcome.error.code}"
        for pid, outcome in enumerate(outcomes)
        if isinstance(outcome.error, SystemExit) and pid not in shown
    ]
    status = next((outcome.status for outcome in outcomes if outcome.status), 0)
    return status, "\n".join(messages) or None


def _failure(simulation: Simulation, failed: list[tuple[int, BaseException]]) -> tuple[int, str]:
    kinds = {kind_of(error) for _, error in failed}
    deadlocks = [error for _, error in failed if isinstance(error, DeadlockError)]
    if kinds == {diagnostics.Deadlock}:
        return MPI_ERROR, str(deadlocks[0])
    # Exceptions of the program explain MPI errors in other ranks.
    kind: type[Diagnostic] = diagnostics.RankFailed
    status = ERROR
    if kind not in kinds:
        kind = diagnostics.MPIError if diagnostics.MPIError in kinds else diagnostics.Truncated
        status = MPI_ERROR
    if any(isinstance(error, KeyboardInterrupt) for _, error in failed):
        status = INTERRUPTED
    parts = [f"{kind.code} {kind.title}: {text.ranks(pid for pid, _ in failed)}"]
    parts.append(format_errors(failed, EARLY.of(simulation.universe).pids).rstrip("\n"))
    outcomes = simulation.outcomes
    stopped = [pid for pid, outcome in enumerate(outcomes) if outcome.state is RankState.STOPPED]
    if stopped:
        verb = "was" if len(stopped) == 1 else "were"
        parts.append(f"  {text.ranks(stopped)} {verb} still running and {verb} stopped")
    aborting: dict[int, list[int]] = {}
    for pid, _ in failed:
        environment = ENVIRONMENT.peek(simulation.universe.ranks[pid])
        if environment is not None and environment.abort_status:
            aborting.setdefault(environment.abort_status, []).append(pid)
    for code, pids in aborting.items():
        parts.append(f"  mpi4py.run: MPI_Abort with error code {code} by {text.ranks(pids)}")
    if simulation.shared_state is not None:
        parts += simulation.shared_state.hints(error for _, error in failed)
    parts.append(f"  help: pysmpi explain {kind.code}")
    return status, "\n".join(parts)


def kind_of(error: BaseException) -> type[Diagnostic]:
    """The diagnostic of an exception that ended a rank."""
    if isinstance(error, DeadlockError):
        return diagnostics.Deadlock
    if isinstance(error, MPIException):
        truncated = error.Get_error_class() == ERR_TRUNCATE
        return diagnostics.Truncated if truncated else diagnostics.MPIError
    return diagnostics.RankFailed


def _abort(simulation: Simulation) -> tuple[int, str]:
    assert simulation.aborted is not None and simulation.abort_rank is not None
    status = simulation.aborted.status
    kind = diagnostics.Aborted
    at = f" at {simulation.abort_site}" if simulation.abort_site is not None else ""
    how = simulation.aborted.how or f"called MPI_Abort with error code {status}"
    return status & 0xFF or ERROR, (
        f"{kind.code} {kind.title}: rank {simulation.abort_rank.pid} {how}{at}\n"
        f"  help: pysmpi explain {kind.code}"
    )


def _hard_exit(found: tuple[Rank, int, CallSite | None, str]) -> tuple[int, str]:
    rank, status, site, how = found
    kind = diagnostics.Aborted
    at = f" at {site}" if site is not None else ""
    return status, (
        f"{kind.code} {kind.title}: rank {rank.pid} {how or f'called os._exit({status})'} before "
        f"MPI.Finalize{at}, which ends the job under a launcher\n"
        f"  help: pysmpi explain {kind.code}"
    )
