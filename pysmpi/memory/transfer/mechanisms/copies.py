"""Two copies through shared buffers, one copy by the kernel, or no model of the node at all."""

from __future__ import annotations

from collections.abc import Callable

from pysmpi.memory.transfer.channel import Channel
from pysmpi.memory.transfer.library import seconds
from pysmpi.memory.transfer.models import MEMORY_MODELS, Builder, MemoryModel, memory_model
from pysmpi.memory.transfer.room import Room
from pysmpi.memory.transfer.single_copy import SingleCopy
from pysmpi.platform.config import Settings


@memory_model("pipelined", "two copies through shared buffers, in chunks (Open MPI, MPICH)")
def pipelined(settings: Settings) -> Builder:
    """The pipelined transfer."""
    return Channel


def _single_copy(start: str, page: str, lasting: bool) -> Callable[[Settings], Builder]:
    def prepare(settings: Settings) -> Builder:
        first = seconds(settings, "memory/single-copy-start", start)
        each = seconds(settings, "memory/single-copy-page", page)

        def build(room: Room, source: int, destination: int, sender: int, receiver: int) -> Channel:
            return SingleCopy(room, source, destination, sender, receiver, first, each, lasting)

        return build

    return prepare


memory_model("cma", "one copy by the receiver through Linux's Cross Memory Attach")(
    _single_copy("1us", "60ns", False)
)
memory_model("knem", "one copy by the receiver through the KNEM kernel module")(
    _single_copy("1.5us", "40ns", False)
)
memory_model("xpmem", "one copy by the receiver from the sender's pages, mapped through XPMEM")(
    _single_copy("0.3us", "250ns", True)
)
MEMORY_MODELS.add(
    MemoryModel("loopback", "no model of the node: the network model's loopback, as in SMPI", None)
)
