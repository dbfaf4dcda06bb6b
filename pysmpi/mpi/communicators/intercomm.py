"""Intercommunicators: two groups that communicate with each other (MPI 4.1, section 7.6).

A handle points to the calling rank's side; `communicator.remote` is the other one.
"""

from __future__ import annotations

from typing import Any

from pysmpi.mpi.base import errhandlers
from pysmpi.mpi.base.constants import ERR_ARG, ERR_GROUP, ERR_RANK
from pysmpi.mpi.base.exceptions import cint, cstring, fail, truth
from pysmpi.mpi.base.handles import wrong_type
from pysmpi.mpi.base.info import INFO_NULL, Info, check_info
from pysmpi.mpi.base.ranks import current
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.communicators.comm import CONTEXT_BYTES, Comm, use_class
from pysmpi.mpi.communicators.intercomm_creation import communicator_of_groups, join
from pysmpi.mpi.communicators.intracomm import Intracomm
from pysmpi.mpi.groups.agreement import agree
from pysmpi.mpi.groups.communicator import Communicator
from pysmpi.mpi.groups.groups import Group, Members

__all__ = ["Intercomm"]


class Intercomm(Comm):
    """Intercommunicator."""

    __slots__ = ()

    _inter = True

    def __new__(cls, comm: Comm | None = None) -> Any:
        self = super().__new__(cls, comm)
        impl = self._impl
        if impl is not None and not (isinstance(impl, Communicator) and impl.inter):
            raise TypeError("expecting an intercommunicator")
        return self

    @classmethod
    def _plain(cls) -> type[Comm]:
        return Intercomm

    @classmethod
    @mpi.collective("7.6.2")
    def Create_from_groups(
        cls,
        local_group: Group,
        local_leader: int,
        remote_group: Group,
        remote_leader: int,
        stringtag: str = "org.mpi4py",
        info: Info = INFO_NULL,
        errhandler: errhandlers.Errhandler | None = None,
    ) -> Intracomm:
        """Create communicator from group."""
        rank = current()
        mine = _members(local_group, "local_group")
        theirs = _members(remote_group, "remote_group")
        tag = cstring(stringtag)
        check_info(info)
        leaders = cint(local_leader), cint(remote_leader)
        if errhandler is not None and not isinstance(errhandler, errhandlers.Errhandler):
            raise wrong_type("errhandler", errhandlers.Errhandler, errhandler)
        if rank.pid not in mine:
            fail(ERR_GROUP, "the calling process is not in local_group")
        for pid in theirs:
            if pid in mine:
                fail(ERR_GROUP, f"process {pid} is in local_group and in remote_group")
        for name, leader, members in (
            ("local_leader", leaders[0], mine),
            ("remote_leader", leaders[1], theirs),
        ):
            if not 0 <= leader < len(members):
                fail(ERR_RANK, f"{name} is {leader}, expected 0 to {len(members) - 1}")
        new = communicator_of_groups(rank, tag, mine, theirs)
        handle = cls._of(new)
        if errhandler is not None:
            handle.Set_errhandler(errhandler)
        return handle  # type: ignore[return-value]

    @mpi.local("7.6.1")
    def Get_remote_group(self) -> Group:
        """Access the remote group associated with the inter-communicator."""
        return Group._accessed(self._communicator().remote.group)

    @property
    def remote_group(self) -> Group:
        """Remote group."""
        return self.Get_remote_group()

    @mpi.local("7.6.1")
    def Get_remote_size(self) -> int:
        """Intercommunicator remote size."""
        return self._communicator().remote.size

    @property
    def remote_size(self) -> int:
        """Number of remote processes."""
        return self.Get_remote_size()

    @mpi.collective("7.6.2")
    def Merge(self, high: bool = False) -> Intracomm:
        """Merge intercommunicator into an intracommunicator."""
        rank = current()
        upper = truth(high)
        communicator = self._usable()
        new = agree(
            rank,
            communicator,
            "intercomm_merge",
            upper,
            CONTEXT_BYTES,
            lambda mine, theirs: join(communicator, mine, theirs),
            self,
        )
        if new is None:
            fail(ERR_ARG, "the ranks of a group differ in high", self)
        handle = Intracomm._of(new)
        errhandlers.inherit(self, handle)
        return handle


def _members(group: object, argument: str) -> Members:
    if not isinstance(group, Group):
        raise wrong_type(argument, Group, group)
    members: Members = group._live().members
    if not len(members):
        fail(ERR_GROUP, f"{argument} is empty")
    return members


use_class(lambda impl: isinstance(impl, Communicator) and impl.inter, Intercomm)
