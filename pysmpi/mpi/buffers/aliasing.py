"""Send and receive buffers that begin at one address, which MPI forbids (MPI 4.1, section 6.2).

The calls and the conditions are those of MPICH, which refuses such buffers with ERR_BUFFER. Buffers
that overlap otherwise are found by the checker `buffers`.

This module is compiled: every collective call with two buffers passes through it.
"""

from __future__ import annotations

from typing import NoReturn

from pysmpi.mpi.base.constants import ERR_BUFFER
from pysmpi.mpi.base.exceptions import fail
from pysmpi.mpi.base.exporting import address_of
from pysmpi.mpi.buffers.contiguous import apart
from pysmpi.mpi.buffers.payload import PAYLOAD
from pysmpi.mpi.buffers.regions import Blocks, MessageRegion


def alias(source: MessageRegion, target: MessageRegion) -> bool:
    """Whether both buffers begin at one address."""
    if apart(source.data, target.data) or PAYLOAD.active:
        return False  # memory that is folded has one address for many arrays
    address = _address(source)
    return address != 0 and address == _address(target)


def alias_of_block(single: MessageRegion, blocks: Blocks, me: int, equal: bool) -> bool:
    """The same for a message and the own block of Gather, Scatter, Allgather and their v-forms.

    With `equal`, only counts that agree make an alias.
    """
    count = blocks.counts[me]
    if single.count == 0 or count == 0 or single.datatype != blocks.datatype:
        return False
    return (not equal or single.count == count) and alias(single, blocks.block(me))


def refuse_alias(subject: object) -> NoReturn:
    """Report buffers that begin at one address."""
    detail = "the buffers begin at the same address: give MPI.IN_PLACE as sendbuf, or a copy"
    fail(ERR_BUFFER, detail, subject)


def _address(region: MessageRegion) -> int:
    memory, origin = region.data, 0
    if memory is None:
        memory, origin = region.memory, region.origin
    return 0 if memory is None or memory.nbytes == 0 else address_of(memory) + origin
