"""The ranks and communicators of a run: a format hears of them before it hears of their calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pysmpi.kernel.requests import Context
from pysmpi.trace.events import Format, RankPlace, TracedCall, TracedCommunicator

if TYPE_CHECKING:
    from pysmpi.runtime.simulation import Simulation


class RecordedWorld:
    """The ranks and communicators that the format has heard of."""

    def __init__(self, format: Format, simulation: Simulation) -> None:
        self.format: Any = format
        self.simulation: Any = simulation
        self.known: int = 0  # ranks
        self._contexts: dict[int, int] = {}  # communicators by context
        self._tell: Any = getattr(format, "communicator", None)

    def meet_ranks(self) -> None:
        """Tell the format of ranks that are new."""
        ranks = self.simulation.universe.ranks
        if len(ranks) > self.known:
            new = ranks[self.known :]
            self.known = len(ranks)
            self.format.begin(
                [
                    RankPlace(rank.pid, rank.host_name(), rank.core_number, rank.process.core.speed)
                    for rank in new
                ]
            )

    def communicator(self, context: Context) -> int:
        """The communicator of a context; the format has heard of it."""
        known = self._contexts.get(context.number)
        if known is None:
            if len(self.simulation.universe.ranks) > self.known:
                self.meet_ranks()
            communicator = self.simulation.universe.communicators.get(context.number)
            number = context.number if communicator is None else communicator.p2p.number
            known = self._contexts[context.number] = number
            if self._tell is not None:
                name = _name_of(communicator, context)
                members = tuple([member.pid for member in context.members])
                peer = context.peer
                sources = () if peer is None else tuple([member.pid for member in peer.members])
                self._tell(TracedCommunicator(context.number, number, name, members, sources))
        return known

    def enter(self, record: TracedCall, context: Context) -> None:
        """A call uses a communicator; it belongs to its first."""
        number = self.communicator(context)
        if not record.communicator:
            record.communicator = number


def _name_of(communicator: Any, context: Context) -> str:
    """A name for people of a communicator."""
    if communicator is None:
        return f"context {context.number}"
    first = communicator.universe.ranks[communicator.group[0]].world
    if first.communicator is communicator:
        return "COMM_WORLD"
    if communicator.size == 1 and communicator.remote is communicator:
        return "COMM_SELF"
    return f"{communicator.kind} {communicator.p2p.number}"
