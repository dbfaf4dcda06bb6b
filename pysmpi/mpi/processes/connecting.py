"""Connecting groups without a common communicator: accept and connect at a port, join at a socket
(MPI 4.1, sections 11.9.2, 11.9.3 and 11.10.5).

The roots of both groups find each other, exchange their groups in two messages, and inform their
groups; the result is an intercommunicator.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pysmpi.kernel.requests import AbstractProcess, Context, Receive, Send
from pysmpi.mpi.base import errhandlers
from pysmpi.mpi.base.constants import ERR_ARG, ERR_PORT, ERR_ROOT, SUCCESS
from pysmpi.mpi.base.exceptions import cint, cstring, fail
from pysmpi.mpi.base.info import INFO_NULL, Info, check_info
from pysmpi.mpi.base.ranks import Rank, Universe, World, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.communicators.intercomm_creation import HEAD_BYTES, PROCESS_BYTES, Half, broadcast
from pysmpi.mpi.groups.agreement import tag_of
from pysmpi.mpi.groups.communicator import Communicator, connect, new_communicator
from pysmpi.mpi.groups.groups import Members
from pysmpi.mpi.groups.handle_types import IntercommHandle as Intercomm
from pysmpi.mpi.point_to_point.envelopes import ObjectBuffer
from pysmpi.mpi.processes.ports import Caller, directory
from pysmpi.python.records import record

if TYPE_CHECKING:
    from socket import socket

_TOKEN = b"pysmpi join "


class Connecting:
    """`Accept` and `Connect`, as a mixin of `Intracomm`."""

    __slots__ = ()

    _usable: Callable[[], Communicator]
    _wrap: Callable[[Any], Any]

    @mpi.process("11.9.2")
    def Accept(self, port_name: str, info: Info = INFO_NULL, root: int = 0) -> Intercomm:
        """Accept a request to form a new intercommunicator."""
        return self._meet_at_port(port_name, info, root, True)

    @mpi.process("11.9.3")
    def Connect(self, port_name: str, info: Info = INFO_NULL, root: int = 0) -> Intercomm:
        """Make a request to form a new intercommunicator."""
        return self._meet_at_port(port_name, info, root, False)

    def _meet_at_port(self, port_name: str, info: Info, root: int, accepts: bool) -> Intercomm:
        rank = current()
        communicator = self._usable()
        check_info(info)
        root = check_root(self, communicator, root)
        leads = communicator.rank_of(rank.pid) == root
        name = cstring(port_name) if leads else ""
        found: Any = None
        if leads:
            port = directory(rank.universe).ports.get(name)
            if port is None:
                found = (ERR_PORT, f"port_name {name!r} is no open port")
            else:
                ours, theirs = port.accepting, port.connecting
                if not accepts:
                    ours, theirs = theirs, ours
                found = (SUCCESS, _meet(rank, Half(communicator.group), ours, theirs))
        code, made = broadcast_result(rank, communicator, root, "comm_connect", found)
        if code:
            fail(code, made, self)
        handle: Intercomm = self._wrap(made)
        errhandlers.inherit(self, handle)  # type: ignore[arg-type]
        return handle


def check_root(comm: object, communicator: Communicator, root: object) -> int:
    """The root of a call, which must be a rank of the communicator."""
    number = cint(root)
    if not 0 <= number < communicator.size:
        fail(ERR_ROOT, f"root is {number}, expected 0 to {communicator.size - 1}", comm)
    return number


def broadcast_result(
    rank: Rank,
    communicator: Communicator,
    root: int,
    operation: str,
    found: tuple[int, object] | None,
) -> tuple[int, Any]:
    """The root sends the result to its group: an error class with a text, or (0, its side).

    If there is a remote group, its members are included.
    """
    me = communicator.rank_of(rank.pid)
    number = communicator.next_call(me)
    shared = communicator.enter(number, operation, me, None)
    if found is not None:
        shared.result = found
    broadcast(rank, communicator, me, root, HEAD_BYTES, tag_of(number, operation))
    code, made = shared.result
    if not code:
        nbytes = made.remote.size * PROCESS_BYTES
        broadcast(rank, communicator, me, root, nbytes, tag_of(number, f"{operation}_members"))
    communicator.exit(shared)
    return code, made


def _meet(rank: Rank, half: Half, ours: deque[Caller], theirs: deque[Caller]) -> Communicator:
    """Wait for the other end, and exchange groups; return the side of the result."""
    me = Caller(rank, half)
    if theirs:
        _introduce(me, theirs.popleft())
    else:
        ours.append(me)
        try:
            rank.process.wait([me.gate])
        finally:
            if me in ours:
                ours.remove(me)
    return _talk(me)


def _introduce(one: Caller, other: Caller) -> None:
    """Connect two processes that have found each other."""
    universe = one.rank.universe
    members: list[AbstractProcess] = [
        universe.processes[caller.rank.pid] for caller in (other, one)
    ]
    context = Context(universe.next_context(), members)
    one.partner, other.partner = other, one
    one.context = other.context = context
    one.place = 1
    other.gate.complete(universe.engine.now)


def _talk(me: Caller) -> Communicator:
    """Two roots exchange their groups, first the sizes."""
    partner = me.partner
    assert partner is not None
    universe = me.rank.universe
    place = me.place
    for out, back in (
        (HEAD_BYTES, HEAD_BYTES),
        (len(me.half.members) * PROCESS_BYTES, len(partner.half.members) * PROCESS_BYTES),
    ):
        send = Send(me.context, place, 1 - place, 0, out)
        send.immediate = True
        receive = Receive(me.context, 1 - place, place, 0, back)
        receive.payload = ObjectBuffer()
        me.rank.process.exchange([send, receive], [send, receive])
    if me.half.side is None:
        me.half.side = new_communicator(universe, me.half.members)
        partner.half.side = new_communicator(universe, partner.half.members)
        connect(me.half.side, partner.half.side)
    side: Communicator = me.half.side
    return side


# The pairs of callers that wait for each other, by the common key of both ends of a socket.
Callers = tuple[deque[Caller], deque[Caller]]
JOINS: StateSlot[Universe, dict[object, Callers]] = StateSlot(Universe, dict)


def join(fd: int) -> Communicator:
    """The intercommunicator of this process with the one at the other end of a socket."""
    rank = current()
    number = cint(fd)
    meetings = JOINS.of(rank.universe)
    rank.process.finish_compute()
    key, first = _pairing(number, meetings)
    waiting = meetings.setdefault(key, (deque(), deque()))
    half = Half(Members((range(rank.pid, rank.pid + 1),)))
    ours, theirs = waiting if first else waiting[::-1]
    return _meet(rank, half, ours, theirs)


def _pairing(fd: int, meetings: Mapping[object, object]) -> tuple[object, bool]:
    """The common key of both ends of a socket, and whether this end is the first of them."""
    from socket import socket  # its import takes long, and few programs come here

    try:
        end = socket(fileno=os.dup(fd))
    except OSError as error:
        fail(ERR_ARG, f"fd {fd}: {error.strerror}, expected a connected socket")
    with end:
        try:
            mine, other = end.getsockname(), end.getpeername()
        except OSError as error:
            fail(ERR_ARG, f"fd {fd}: {error.strerror}, expected a connected socket")
        if mine != other:
            return tuple(sorted((mine, other), key=repr)), repr(mine) < repr(other)
        # The ends of a pair of local sockets have no names: the first caller leaves a token.
        return _token(end, meetings)


def _token(end: socket, meetings: Mapping[object, object]) -> tuple[object, bool]:
    from socket import MSG_DONTWAIT, MSG_PEEK

    size = len(_TOKEN) + 8
    try:
        seen = end.recv(size, MSG_DONTWAIT | MSG_PEEK)
    except BlockingIOError:
        seen = b""
    if seen.startswith(_TOKEN):
        end.recv(size)
        return seen, False
    token = _TOKEN + len(meetings).to_bytes(8, "little")
    end.send(token)
    return token, True


@record
class Origin:
    """The origin of a spawned world: its side of the communicator with its parents, and `launcher`.

    `launcher` is the communicator of the process that spawned it and all its ranks; the command of
    `nbytes` is sent in it.
    """

    parent: Communicator | None = None
    launcher: Communicator | None = None
    nbytes: int = 0


@record
class Parent:
    """The handle of a rank to its parents' communicator, and whether the rank has freed it."""

    handle: object = None
    freed: bool = False


ORIGIN = StateSlot(World, Origin)
PARENT = StateSlot(Rank, Parent)


def parent_of(rank: Rank) -> Communicator | None:
    """The side of the spawned world in its communicator with its parents, while that exists."""
    return None if PARENT.of(rank).freed else ORIGIN.of(rank.world).parent


def forget_parent(rank: Rank, impl: object) -> None:
    """The rank has freed a communicator: it may be the one with its parents."""
    if impl is not None and ORIGIN.of(rank.world).parent is impl:
        PARENT.of(rank).freed = True
