"""Intracommunicators: the predefined ones, and those made from groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pysmpi.mpi.base import errhandlers
from pysmpi.mpi.base.constants import ERR_GROUP, ERR_TAG
from pysmpi.mpi.base.exceptions import cint, cstring, fail
from pysmpi.mpi.base.handles import wrong_type
from pysmpi.mpi.base.info import INFO_NULL, Info, check_info
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.collective.calls import IntracommCollectives
from pysmpi.mpi.communicators.comm import CONTEXT_BYTES, Comm, use_class
from pysmpi.mpi.communicators.intercomm_creation import IntercommCreation
from pysmpi.mpi.groups.agreement import agree
from pysmpi.mpi.groups.communicator import MEETINGS, SELF, WORLD, Communicator, new_communicator
from pysmpi.mpi.groups.groups import Group, Members
from pysmpi.mpi.processes.connecting import Connecting
from pysmpi.mpi.processes.spawning import Spawning
from pysmpi.mpi.topologies.creation import TopologyCreation

__all__ = ["Intracomm", "COMM_SELF", "COMM_WORLD"]


class Intracomm(
    IntracommCollectives, TopologyCreation, IntercommCreation, Connecting, Spawning, Comm
):
    """Intracommunicator."""

    __slots__ = ()

    def __new__(cls, comm: Comm | None = None) -> Any:
        self = super().__new__(cls, comm)
        if isinstance(self._impl, Communicator) and self._impl.inter:
            raise TypeError("expecting an intracommunicator")
        return self

    @classmethod
    def _plain(cls) -> type[Comm]:
        return Intracomm

    @mpi.collective("7.4.2")
    def Create_group(self, group: Group, tag: int = 0) -> Intracomm:
        """Create communicator from group."""
        rank = current()
        communicator = self._usable()
        members = _members(group)
        for pid in members:
            if pid not in communicator.group:
                fail(ERR_GROUP, f"process {pid} of the group is not in the communicator", self)
        number = cint(tag)
        if number < 0:
            fail(ERR_TAG, f"tag is {number}, expected one that is not negative", self)
        new = _gather(rank, (communicator, number), members)
        made: object = self._derived(rank, new)
        return cast(Intracomm, made)

    @classmethod
    @mpi.collective("7.4.2")
    def Create_from_group(
        cls,
        group: Group,
        stringtag: str = "org.mpi4py",
        info: Info = INFO_NULL,
        errhandler: errhandlers.Errhandler | None = None,
    ) -> Intracomm:
        """Create communicator from group."""
        rank = current()
        members = _members(group)
        name = cstring(stringtag)
        check_info(info)
        new = cls._of(_gather(rank, name, members))
        if errhandler is not None and new:
            new.Set_errhandler(errhandler)
        return new


def _members(group: object) -> Members:
    if not isinstance(group, Group):
        raise wrong_type("group", Group, group)
    members: Members = group._live().members
    return members


def _gather(rank: Rank, purpose: object, members: Members) -> Communicator | None:
    """A new communicator; only these processes take part in making it."""
    if rank.pid not in members:
        return None
    meetings = MEETINGS.of(rank.universe)
    key = (purpose, members)
    meeting = meetings.get(key)
    if meeting is None:
        meeting = meetings[key] = new_communicator(rank.universe, members)

    def make(values: Mapping[int, object]) -> Communicator:
        # The next call with the same purpose is independent.
        if meetings.get(key) is meeting:
            del meetings[key]
        return new_communicator(rank.universe, members)

    new: Communicator | None = agree(rank, meeting, "comm_create_group", None, CONTEXT_BYTES, make)
    return new


use_class(lambda impl: impl.__class__ is not Communicator or not impl.inter, Intracomm)

COMM_SELF = Intracomm._define("COMM_SELF", SELF, 0x44000001)
COMM_WORLD = Intracomm._define("COMM_WORLD", WORLD, 0x44000000)
