"""The ranks and communicators of a run: a format hears of them before it hears of their calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pysmpi.kernel.requests import Context
from pysmpi.trace.events import Format, RankPlace, TracedCall, TracedCommunicator

if TYPE_CHECKING:
    from pysmpi.mpi.groups.communicator import Communicator
    from pysmpi.ranks.simulation import Simulation


class RecordedWorld:
    """The ranks and communicators that the format has heard of."""

    def __init__(self, format: Format, simulation: Simulation) -> None:
        self._format = format
        self._simulation = simulation
        self.known: int = 0  # ranks
        self._contexts: dict[int, int] = {}  # communicators by context
        self._internal: set[int] = set()  # contexts
        self._tell: Any = getattr(format, "communicator", None)

    def meet_ranks(self) -> None:
        """Tell the format of ranks that are new."""
        ranks = self._simulation.universe.ranks
        if len(ranks) > self.known:
            new = ranks[self.known :]
            self.known = len(ranks)
            self._format.begin(
                [
                    RankPlace(rank.pid, rank.host_name(), rank.core_number, rank.process.core.speed)
                    for rank in new
                ]
            )

    def communicator(self, context: Context) -> int:
        """The communicator of a context; the format has heard of it."""
        known = self._contexts.get(context.number)
        if known is None:
            if len(self._simulation.universe.ranks) > self.known:
                self.meet_ranks()
            communicator = self._simulation.universe.communicator_of(context.number)
            if (
                communicator is None
                or communicator.p2p is not context
                or communicator.kind == "window"
            ):
                self._internal.add(context.number)
            number = context.number if communicator is None else communicator.p2p.number
            known = self._contexts[context.number] = number
            if self._tell is not None:
                name = _name_of(communicator, context)
                members = tuple([member.pid for member in context.members])
                peer = context.peer
                sources = () if peer is None else tuple([member.pid for member in peer.members])
                self._tell(TracedCommunicator(context.number, number, name, members, sources))
        return known

    def is_internal(self, context: Context) -> bool:
        """Whether the format has heard of a context whose tags are not the program's."""
        return context.number in self._internal

    def enter(self, record: TracedCall, context: Context) -> None:
        """A call uses a communicator; it belongs to its first."""
        number = self.communicator(context)
        if not record.communicator:
            record.communicator = number


def _name_of(communicator: Communicator | None, context: Context) -> str:
    """A name for people of a communicator."""
    if communicator is None:
        return f"context {context.number}"
    first = communicator.universe.ranks[communicator.group[0]].world
    if first.communicator is communicator:
        return "COMM_WORLD"
    if communicator.size == 1 and communicator.remote is communicator:
        return "COMM_SELF"
    return f"{communicator.kind} {communicator.p2p.number}"
