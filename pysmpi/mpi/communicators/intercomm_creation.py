"""Creating an intercommunicator from two groups, and merging it into one.

`Create_intercomm` needs no communicator that contains both groups: their leaders exchange the
members of the groups, and then inform their own groups (MPI 4.1, section 7.6.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pysmpi.collectives.cache import schedule_for
from pysmpi.collectives.call import Call
from pysmpi.kernel.requests import Context, Receive, Send
from pysmpi.mpi.base import errhandlers
from pysmpi.mpi.base.constants import ERR_COMM, ERR_RANK, ERR_TAG
from pysmpi.mpi.base.exceptions import cint, fail
from pysmpi.mpi.base.handles import type_name
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.groups.agreement import agree, tag_of
from pysmpi.mpi.groups.communicator import (
    MEETINGS,
    Communicator,
    check_intact,
    connect,
    new_communicator,
)
from pysmpi.mpi.groups.groups import Members
from pysmpi.mpi.groups.handle_types import IntercommHandle as Intercomm
from pysmpi.mpi.groups.handle_types import IntracommHandle as Intracomm
from pysmpi.mpi.point_to_point.envelopes import ObjectBuffer

HEAD_BYTES = 8  # context and size of a group
PROCESS_BYTES = 4  # to name a process


class Half:
    """The message of one leader to the other: its group. `side` is the result."""

    __slots__ = ("members", "side")

    def __init__(self, members: Members) -> None:
        self.members = members
        self.side: Communicator | None = None


class IntercommCreation:
    """The call that makes intercommunicators, as a mixin of `Intracomm`."""

    __slots__ = ()

    @mpi.collective("7.6.2")
    def Create_intercomm(
        self, local_leader: int, peer_comm: Intracomm, remote_leader: int, tag: int = 0
    ) -> Intercomm:
        """Create intercommunicator."""
        rank = current()
        comm: Any = self
        communicator = comm._usable()
        leader, remote, tag = cint(local_leader), cint(remote_leader), cint(tag)
        if not isinstance(peer_comm, IntercommCreation):
            raise TypeError(
                "Argument 'peer_comm' has incorrect type (expected mpi4py.MPI.Intracomm, got "
                f"{type_name(peer_comm)})"
            )
        if not 0 <= leader < communicator.size:
            fail(ERR_RANK, f"local_leader is {leader}, expected 0 to {communicator.size - 1}", comm)
        half = None
        if communicator.rank_of(rank.pid) == leader:
            peers = peer_comm._usable()
            if not 0 <= remote < peers.size:
                fail(ERR_RANK, f"remote_leader is {remote}, expected 0 to {peers.size - 1}", comm)
            if tag < 0:
                fail(ERR_TAG, f"tag is {tag}, expected one that is not negative", comm)
            half = Half(communicator.group)
        if half is not None:
            _introduce(rank, peer_comm, peers, remote, tag, half)
        new = _told(rank, comm, communicator, leader, half)
        if new is None:
            fail(ERR_COMM, "a process is in both groups", comm)
        handle = comm._wrap(new)
        errhandlers.inherit(comm, handle)
        return handle  # type: ignore[no-any-return]


def _introduce(
    rank: Rank, comm: object, peers: Communicator, remote: int, tag: int, half: Half
) -> None:
    """The leaders exchange their groups, first the sizes; both then have a side."""
    context = peers.leaders
    if context is None:
        number = peers.universe.next_context()
        context = peers.leaders = Context(number, peers.p2p.members)
        peers.universe.purposes[number] = peers
    me = peers.rank_of(rank.pid)
    other = _swap(rank, context, me, remote, tag, HEAD_BYTES, HEAD_BYTES, half)
    if other is None:
        check_intact(comm, peers)
        return
    _swap(
        rank,
        context,
        me,
        remote,
        tag,
        len(half.members) * PROCESS_BYTES,
        len(other.members) * PROCESS_BYTES,
        half,
    )
    if half.side is None and not any(pid in half.members for pid in other.members):
        half.side, other.side = _pair(peers, half.members, other.members)


def _swap(
    rank: Rank, context: Context, me: int, remote: int, tag: int, out: int, back: int, half: Half
) -> Half | None:
    send = Send(context, me, remote, tag, out)
    send.immediate = True
    send.payload = half
    receive = Receive(context, remote, me, tag, back)
    buffer = receive.payload = ObjectBuffer()
    rank.process.exchange([send, receive], [send, receive])
    result: Half | None = buffer.data
    return result


def _told(
    rank: Rank, comm: object, communicator: Communicator, leader: int, half: Half | None
) -> Communicator | None:
    """The leader sends the remote members to its group, first their number."""
    me = communicator.rank_of(rank.pid)
    number = communicator.next_call(me)
    shared = communicator.enter(number, "intercomm_create", me, None)
    if half is not None:
        shared.result = (half.side,)
    broadcast(rank, communicator, me, leader, HEAD_BYTES, tag_of(number, "intercomm_create"))
    if communicator.revoked:
        check_intact(comm, communicator)
    new: Communicator | None = shared.result[0]
    if new is not None:
        others = new.remote.size * PROCESS_BYTES
        broadcast(rank, communicator, me, leader, others, tag_of(number, "intercomm_members"))
    communicator.exit(shared)
    return new


def broadcast(
    rank: Rank, communicator: Communicator, me: int, root: int, nbytes: int, tag: int
) -> None:
    """Take part in the messages of a broadcast without data."""
    call = Call("bcast", me, communicator.size, root, nbytes, selection=rank.universe.selection)
    rank.process.execute(schedule_for(call), communicator.coll, me, tag)


def _pair(
    communicator: Communicator, mine: Members, theirs: Members
) -> tuple[Communicator, Communicator]:
    one, other = (
        new_communicator(communicator.universe, mine),
        new_communicator(communicator.universe, theirs),
    )
    connect(one, other)
    return one, other


def communicator_of_groups(
    rank: Rank, purpose: str, mine: Members, theirs: Members
) -> Communicator:
    """An intercommunicator of two groups that know each other: all members agree on it."""
    first, second = (mine, theirs) if mine[0] < theirs[0] else (theirs, mine)
    meetings = MEETINGS.of(rank.universe)
    key = (purpose, first, second)
    meeting = meetings.get(key)
    if meeting is None:
        meeting = meetings[key] = new_communicator(rank.universe, [*first, *second])

    def make(values: Mapping[int, object]) -> tuple[Communicator, Communicator]:
        # The next call with the same purpose is independent.
        if meetings.get(key) is meeting:
            del meetings[key]
        return _pair(meeting, first, second)

    one, other = agree(rank, meeting, "intercomm_from_groups", None, HEAD_BYTES, make)
    side: Communicator = one if mine is first else other
    return side


def join(
    communicator: Communicator, mine: dict[int, bool], theirs: dict[int, bool]
) -> Communicator | None:
    """One communicator of both groups; the group with `high` comes last.

    If both pass the same value, the group that is first in the machine comes first. None if the
    ranks of a group pass different values.
    """
    one, other = set(mine.values()), set(theirs.values())
    if len(one) > 1 or len(other) > 1:
        return None
    (high,), (remote_high,) = one, other
    near, far = communicator.group, communicator.remote.group
    if high == remote_high:
        high = near[0] > far[0]
    pids = [*far, *near] if high else [*near, *far]
    return new_communicator(communicator.universe, pids)
