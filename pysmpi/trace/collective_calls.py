"""The collective calls of a recording: their numbers and the names of their algorithms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pysmpi.collectives import registry
from pysmpi.collectives.call import Call
from pysmpi.collectives.running import find_live
from pysmpi.errors import UsageError
from pysmpi.kernel.requests import Context

if TYPE_CHECKING:
    from pysmpi.mpi.collective.contribution import Contribution


class CollectiveCalls:
    """Collective calls that some of their ranks have entered, and algorithms that were chosen."""

    def __init__(self) -> None:
        # The number of each call, and the ranks that are still to enter it.
        self._entering: dict[tuple[int, str, int], list[int]] = {}
        self._algorithms: dict[tuple[Any, ...], str] = {}
        self._live: dict[str, bool] = {}

    def number(self, contribution: Contribution, context: Context, new: int) -> int:
        """The number of the call that a rank enters: `new` for its first rank."""
        communicator, remote = contribution.communicator, contribution.communicator.remote
        number = context.number
        if remote is not communicator and context is communicator.coll:
            number = min(number, remote.coll.number)  # the same for both groups
        key = number, contribution.label, contribution.number
        known = self._entering.get(key)
        if known is None:
            ranks = communicator.size
            if remote is not communicator:
                ranks += remote.size
            known = self._entering[key] = [new, ranks]
        known[1] -= 1
        if known[1] == 0:
            del self._entering[key]
        return known[0]

    def decides(self, call: Call) -> bool:
        """Whether the algorithm of a call decides while it runs."""
        some = self._live.get(call.op)
        if some is None:
            some = self._live[call.op] = registry.has_live(call.op)
        if not some:
            return False
        return find_live(call) is not None

    def algorithm(self, call: Call, context: Context, selection: Any) -> str:
        """The name of the algorithm of a call."""
        key = (context.number, call.op, call.root, call.count, call.type_size, call.commutative,
               call.in_place, call.nonblocking, call.send_counts, call.recv_counts)  # fmt: skip
        name = self._algorithms.get(key)
        if name is None:
            if selection is None or selection.automatic:
                name = ""
            else:
                try:
                    name = selection.choose(call)
                except UsageError:
                    name = ""
            if len(self._algorithms) > 10_000:
                self._algorithms.clear()
            self._algorithms[key] = name
        return name
