"""Collective calls: the processes that make a call together, and its place in their order."""

from __future__ import annotations

from pysmpi.checkers.describing import communicator_handle, communicator_of
from pysmpi.mpi.calls import CallKind, MpiCall, Procedure
from pysmpi.mpi.files.files import File
from pysmpi.mpi.groups.communicator import Communicator
from pysmpi.mpi.rma.windows import Win

_NOT_COLLECTIVE = frozenset(
    "Abort Ack_failed Revoke Create_group Create_from_group Create_from_groups Join Cart_map "
    "Graph_map Free Disconnect Agree Iagree Shrink Ishrink Get_failed _commctx_intra "
    "_commctx_inter".split()
)
# Calls of other chapters that all ranks of a communicator make.
_PREPARED_ON = frozenset(
    "Create Allocate Allocate_shared Create_dynamic Open Spawn Spawn_multiple Accept "
    "Connect".split()
)
_WINDOW = frozenset(("Fence", "Free"))
_FILE = frozenset(
    "Close Set_view Set_size Preallocate Sync Set_atomicity Read_all Write_all Read_at_all "
    "Write_at_all Read_ordered Write_ordered Read_all_begin Read_all_end Write_all_begin "
    "Write_all_end Iread_all Iwrite_all Iread_at_all Iwrite_at_all Seek_shared".split()
)


class CallGroup:
    """The processes of a collective call: calls with one `key` match in their order.

    `noun` is that of the object, if it is no communicator.
    """

    __slots__ = ("key", "pids", "communicator", "noun")

    def __init__(
        self, key: object, pids: tuple[int, ...], communicator: Communicator, noun: str
    ) -> None:
        self.key = key
        self.pids = pids
        self.communicator = communicator
        self.noun = noun


def may_meet(procedure: Procedure) -> bool:
    """Whether calls of a procedure may be collective: `group_of` is None for all others."""
    name, kind = procedure.name, procedure.kind
    if kind is CallKind.COLLECTIVE:
        return name not in _NOT_COLLECTIVE
    if kind is CallKind.ONE_SIDED and name in _WINDOW:
        return True
    if kind is CallKind.FILE and name in _FILE:
        return True
    return name in _PREPARED_ON and kind is not CallKind.LOCAL


def group_of(call: MpiCall) -> CallGroup | None:
    """The processes that make a call together; None for a call that is not collective."""
    name, kind = call.name, call.kind
    if kind is CallKind.COLLECTIVE:
        if name in _NOT_COLLECTIVE:
            return None
    elif kind is CallKind.ONE_SIDED and name in _WINDOW:
        side = call.values[0]._impl if isinstance(call.values[0], Win) else None
        if side is None:
            return None
        communicator = side.window.communicator
        return CallGroup(
            ("window", communicator.p2p.number),
            tuple(communicator.group),
            communicator,
            "the window",
        )
    elif kind is CallKind.FILE and name in _FILE:
        impl = call.values[0]._impl if isinstance(call.values[0], File) else None
        if impl is None:
            return None
        shared = impl.file.communicator
        return CallGroup(("file", shared.p2p.number), tuple(shared.group), shared, "the file")
    elif name not in _PREPARED_ON or kind is CallKind.LOCAL:
        return None
    named = communicator_of(call.rank, communicator_handle(call))
    if named is None or named.revoked or (named.size == 1 and not named.inter):
        return None
    if named.inter and name in _PREPARED_ON:
        return None
    number = min(named.p2p.number, named.remote.p2p.number)
    pids = tuple(named.group) + (tuple(named.remote.group) if named.inter else ())
    return CallGroup(number, pids, named, "")
