"""The time that a library takes to pack and unpack strided data of collective operations.

A library packs what a rank contributes once, before its algorithm, and unpacks what the rank
receives once, at its end. A model of middleware costs prices each message of the algorithm instead:
it gets the strides of the rank's data.
"""

from __future__ import annotations

from typing import Any, Protocol

from pysmpi.kernel.plan import Transport
from pysmpi.mpi.base.ranks import Rank, Universe
from pysmpi.mpi.buffers.contiguous import MessageRegion
from pysmpi.mpi.buffers.regions import Blocks
from pysmpi.mpi.collective.contribution import Contribution
from pysmpi.mpi.collective.data import Allgather, Alltoall, Broadcast, Gather, Scatter
from pysmpi.mpi.collective.reductions import Prefix, Reduction
from pysmpi.mpi.datatypes.datatypes import COMMITTED
from pysmpi.mpi.datatypes.records import Type
from pysmpi.platform.stride_table import Strides


def strides_of(region: object) -> Strides | None:
    """The bytes, the pieces and the span of a message or of the blocks of all; None: contiguous."""
    if isinstance(region, Blocks):
        filled = [number for number, count in enumerate(region.counts) if count]
        if not filled or _scattered(region.block(filled[0])) is None:
            return None
        each = [_scattered(region.block(number)) for number in filled]
        parts = [one for one in each if one is not None]
        return Strides(*(sum(column) for column in zip(*parts)))
    return _scattered(region)


def _scattered(region: object) -> Strides | None:
    if not isinstance(region, MessageRegion) or region.data is not None or region.nbytes == 0:
        return None
    plan: Any = region.plan
    if plan is None or plan.pieces <= 1:
        return None
    return Strides(region.nbytes, plan.pieces, plan.high - plan.low)


def regions_of(contribution: Contribution) -> tuple[object, object]:
    """The data that a rank contributes, and the place where it receives; None for nothing."""
    if isinstance(contribution, Broadcast):
        message = contribution.message
        return (message, None) if contribution.sends else (None, message)
    if isinstance(contribution, Gather | Allgather):
        return contribution.message, contribution.blocks
    if isinstance(contribution, Scatter):
        return contribution.blocks, contribution.message
    if isinstance(contribution, Alltoall):
        return contribution.outgoing, contribution.incoming
    if isinstance(contribution, Reduction | Prefix):
        return contribution.message, contribution.target
    return None, None


def _nothing(record: Type) -> None:
    pass


class Packer(Protocol):
    """A transport that knows the cost of packing."""

    def pack_seconds(self, slot: int, strides: Strides, write: bool) -> float:
        """Seconds to pack the strided data of a rank, or to unpack it (`write`)."""

    def moves_strided(self, pid: int, strides: Strides | None) -> None:
        """The data of the collective that a rank is in is strided, or it has left."""


def packer_of(transport: Transport | None) -> Packer | None:
    """The part of a transport that knows the cost of packing; None: packing takes no time."""
    part: Any = transport
    while part is not None:
        if hasattr(part, "pack_seconds"):
            packer: Packer = part
            return packer
        part = getattr(part, "network", None)
    return None


class CollectivePacking:
    """Charges the packing of strided data to ranks, from the first datatype with gaps on."""

    def __init__(self, universe: Universe, packer: Packer) -> None:
        self.universe = universe
        self.packer = packer
        self._received: dict[tuple[int, int], Strides] = {}  # by pid and number of the call

    def begin(self) -> None:
        """Wait for a datatype with gaps."""
        COMMITTED.put(self.universe, self.committed)

    def committed(self, record: Type) -> None:
        """A rank has committed a datatype."""
        if not record.layout.dense:
            COMMITTED.put(self.universe, _nothing)
            self.universe.listen(self)

    def collective_entered(self, contribution: Contribution, rank: Rank) -> None:
        """The library packs what the rank contributes."""
        sent, received = map(strides_of, regions_of(contribution))
        if sent is not None:
            self._charge(rank, sent, False)
            if contribution.request is not None:
                # A non-blocking call packs before its algorithm goes on in the background.
                rank.process.finish_compute()
        if received is not None:
            self._received[rank.pid, contribution.number] = received
        for strides in filter(None, (sent, received)):
            self.packer.moves_strided(rank.pid, strides)

    def collective_left(self, contribution: Contribution, rank: Rank) -> None:
        """The library unpacks what the rank has received."""
        received = self._received.pop((rank.pid, contribution.number), None)
        if received is not None:
            self._charge(rank, received, True)
        self.packer.moves_strided(rank.pid, None)

    def _charge(self, rank: Rank, strides: Strides, write: bool) -> None:
        process = rank.process
        seconds = self.packer.pack_seconds(process.slot, strides, write)
        if seconds > 0.0:
            process.debt += seconds
            process.compute_seconds -= seconds  # of the library
