"""The choice of a memory model for a run, if it needs one."""

from __future__ import annotations

from collections.abc import Sequence

from pysmpi.kernel.plan import Transport
from pysmpi.memory.transfer.described import Locate, described
from pysmpi.memory.transfer.library import read_library
from pysmpi.network.middleware import MiddlewareTransport
from pysmpi.platform.config import Settings
from pysmpi.platform.placement import Slot

_NAMES = ("memory/protocol", "memory/primitive", "memory/line-state")


def over(
    network: Transport,
    slots: Sequence[Slot],
    settings: Settings,
    locate: Locate | None = None,
) -> Transport:
    """The transport of a run whose network is `network`.

    This is the network itself if no node is described, or if its model includes nodes and the run
    names no memory model.

    Raises UsageError for wrong options, also if no node is described.
    """
    read_library(settings)
    if not settings.said.keys().isdisjoint(_NAMES):
        # These rooms take longer to import than most runs need them.
        from pysmpi.memory.transfer.names import check_names

        check_names(settings)
    name = settings.text("memory/model")
    if isinstance(network, MiddlewareTransport):
        network.places = slots
        network.locate = locate
        if not name:
            return network
    inside = any(described(slot.host) for slot in slots)
    if not inside and not name:
        return network
    # The models take longer to import than most machines need them.
    from pysmpi.memory.transfer.models import find_memory_model
    from pysmpi.memory.transfer.transport import MemoryTransport

    model = find_memory_model(name or "pipelined")
    if model.prepare is None or not inside:
        return network
    return MemoryTransport(network, slots, settings, model.prepare(settings), locate)
