"""Groups, communicators, their attributes and names (MPI 4.1, chapter 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pysmpi.abi.callbacks import copy_function, delete_function, value_address
from pysmpi.abi.entry import ENTRIES, entry
from pysmpi.abi.values import (
    free,
    give,
    give_request,
    give_text,
    read_integers,
    release,
    text,
    write_integer,
    write_integers,
)
from pysmpi.mpi.base.attributes import Keyval, add_keyval

if TYPE_CHECKING:
    from mpi4py import MPI
else:
    from pysmpi.mpi import MPI

HOST = 0x64400003  # the removed attribute of MPI-1, which no process has
OBJECT_NAME = 128  # bytes of a name


@entry
def Comm_rank(comm: MPI.Comm, rank: int) -> None:
    write_integer(rank, comm.Get_rank())


@entry
def Comm_size(comm: MPI.Comm, size: int) -> None:
    write_integer(size, comm.Get_size())


@entry
def Comm_remote_size(comm: MPI.Intercomm, size: int) -> None:
    write_integer(size, comm.Get_remote_size())


@entry
def Comm_test_inter(comm: MPI.Comm, flag: int) -> None:
    write_integer(flag, comm.Is_inter())


@entry
def Comm_compare(comm1: MPI.Comm, comm2: MPI.Comm, result: int) -> None:
    write_integer(result, MPI.Comm.Compare(comm1, comm2))


@entry
def Comm_dup(comm: MPI.Comm, newcomm: int) -> None:
    give(newcomm, MPI.COMM_NULL)  # also if a callback of an attribute fails
    give(newcomm, comm.Dup())


@entry
def Comm_dup_with_info(comm: MPI.Comm, info: MPI.Info, newcomm: int) -> None:
    give(newcomm, MPI.COMM_NULL)
    give(newcomm, comm.Dup_with_info(info))


@entry
def Comm_idup(comm: MPI.Comm, newcomm: int, request: int) -> None:
    made, started = comm.Idup()
    give(newcomm, made)
    give_request(request, started)


@entry
def Comm_idup_with_info(comm: MPI.Comm, info: MPI.Info, newcomm: int, request: int) -> None:
    made, started = comm.Idup_with_info(info)
    give(newcomm, made)
    give_request(request, started)


@entry
def Comm_create(comm: MPI.Comm, group: MPI.Group, newcomm: int) -> None:
    give(newcomm, comm.Create(group))


@entry
def Comm_create_group(comm: MPI.Intracomm, group: MPI.Group, tag: int, newcomm: int) -> None:
    give(newcomm, comm.Create_group(group, tag))


@entry
def Comm_create_from_group(
    group: MPI.Group, stringtag: int, info: MPI.Info, errhandler: MPI.Errhandler, newcomm: int
) -> None:
    give(newcomm, MPI.Intracomm.Create_from_group(group, text(stringtag), info, errhandler))


@entry
def Comm_split(comm: MPI.Comm, color: int, key: int, newcomm: int) -> None:
    give(newcomm, comm.Split(color, key))


@entry
def Comm_split_type(
    comm: MPI.Intracomm, split_type: int, key: int, info: MPI.Info, newcomm: int
) -> None:
    give(newcomm, comm.Split_type(split_type, key, info))


@entry
def Comm_free(comm: int) -> None:
    free(comm, "C", MPI.COMM_NULL)


@entry
def Comm_group(comm: MPI.Comm, group: int) -> None:
    give(group, comm.Get_group())


@entry
def Comm_remote_group(comm: MPI.Intercomm, group: int) -> None:
    give(group, comm.Get_remote_group())


@entry
def Comm_set_name(comm: MPI.Comm, comm_name: int) -> None:
    comm.Set_name(text(comm_name))


@entry
def Comm_get_name(comm: MPI.Comm, comm_name: int, resultlen: int) -> None:
    give_text(comm_name, resultlen, comm.Get_name(), OBJECT_NAME)


@entry
def Comm_set_info(comm: MPI.Comm, info: MPI.Info) -> None:
    comm.Set_info(info)


@entry
def Comm_get_info(comm: MPI.Comm, info_used: int) -> None:
    give(info_used, comm.Get_info())


@entry
def Intercomm_create(
    local_comm: MPI.Intracomm, local_leader: int, peer_comm: MPI.Intracomm, remote_leader: int,
    tag: int, newintercomm: int,
) -> None:  # fmt: skip
    made = local_comm.Create_intercomm(local_leader, peer_comm, remote_leader, tag)
    give(newintercomm, made)


@entry
def Intercomm_create_from_groups(
    local_group: MPI.Group, local_leader: int, remote_group: MPI.Group, remote_leader: int,
    stringtag: int, info: MPI.Info, errhandler: MPI.Errhandler, newintercomm: int,
) -> None:  # fmt: skip
    made = MPI.Intercomm.Create_from_groups(
        local_group, local_leader, remote_group, remote_leader, text(stringtag), info, errhandler
    )
    give(newintercomm, made)


@entry
def Intercomm_merge(intercomm: MPI.Intercomm, high: int, newintracomm: int) -> None:
    give(newintracomm, intercomm.Merge(bool(high)))


# Groups.


@entry
def Group_size(group: MPI.Group, size: int) -> None:
    write_integer(size, group.Get_size())


@entry
def Group_rank(group: MPI.Group, rank: int) -> None:
    write_integer(rank, group.Get_rank())


@entry
def Group_translate_ranks(
    group1: MPI.Group, n: int, ranks1: int, group2: MPI.Group, ranks2: int
) -> None:
    write_integers(ranks2, group1.Translate_ranks(read_integers(ranks1, n), group2))


@entry
def Group_compare(group1: MPI.Group, group2: MPI.Group, result: int) -> None:
    write_integer(result, MPI.Group.Compare(group1, group2))


@entry
def Group_union(group1: MPI.Group, group2: MPI.Group, newgroup: int) -> None:
    give(newgroup, MPI.Group.Union(group1, group2))


@entry
def Group_intersection(group1: MPI.Group, group2: MPI.Group, newgroup: int) -> None:
    give(newgroup, MPI.Group.Intersection(group1, group2))


@entry
def Group_difference(group1: MPI.Group, group2: MPI.Group, newgroup: int) -> None:
    give(newgroup, MPI.Group.Difference(group1, group2))


@entry
def Group_incl(group: MPI.Group, n: int, ranks: int, newgroup: int) -> None:
    give(newgroup, group.Incl(read_integers(ranks, n)))


@entry
def Group_excl(group: MPI.Group, n: int, ranks: int, newgroup: int) -> None:
    give(newgroup, group.Excl(read_integers(ranks, n)))


def _ranges(n: int, address: int) -> list[tuple[int, int, int]]:
    values = read_integers(address, 3 * n)
    return [(values[i], values[i + 1], values[i + 2]) for i in range(0, 3 * n, 3)]


@entry
def Group_range_incl(group: MPI.Group, n: int, ranges: int, newgroup: int) -> None:
    give(newgroup, group.Range_incl(_ranges(n, ranges)))


@entry
def Group_range_excl(group: MPI.Group, n: int, ranges: int, newgroup: int) -> None:
    give(newgroup, group.Range_excl(_ranges(n, ranges)))


@entry
def Group_free(group: int) -> None:
    release(group, "G", MPI.GROUP_NULL)


@entry
def Group_from_session_pset(session: MPI.Session, pset_name: int, newgroup: int) -> None:
    give(newgroup, MPI.Group.Create_from_session_pset(session, text(pset_name)))


# Attributes, of communicators, datatypes and windows.


def attributes(prefix: str, family: Any) -> None:
    """Declare the functions for the attributes of one class of objects."""
    name = family._family.__name__

    def create_keyval(copy: int, delete: int, keyval: int, state: int) -> None:
        key = Keyval(name, copy_function(copy, state), delete_function(delete, state), True)
        key.in_c = True
        write_integer(keyval, add_keyval(key))

    def free_keyval(keyval: int) -> None:
        family.Free_keyval(read_integers(keyval, 1)[0])
        write_integer(keyval, MPI.KEYVAL_INVALID)

    def set_attr(subject: Any, keyval: int, value: int) -> None:
        subject.Set_attr(keyval, value)

    def get_attr(subject: Any, keyval: int, value: int, flag: int) -> None:
        result = MPI.PROC_NULL if keyval == HOST else subject.Get_attr(keyval)
        write_integer(flag, result is not None)
        if result is not None:
            write_integer(value, value_address(keyval, result), 8)

    def delete_attr(subject: Any, keyval: int) -> None:
        subject.Delete_attr(keyval)

    ENTRIES[f"{prefix}_create_keyval"] = create_keyval
    ENTRIES[f"{prefix}_free_keyval"] = free_keyval
    ENTRIES[f"{prefix}_set_attr"] = set_attr
    ENTRIES[f"{prefix}_get_attr"] = get_attr
    ENTRIES[f"{prefix}_delete_attr"] = delete_attr


attributes("Comm", MPI.Comm)
attributes("Type", MPI.Datatype)
attributes("Win", MPI.Win)

# The names of MPI-1.
for _old, _new in (
    ("Keyval_create", "Comm_create_keyval"), ("Keyval_free", "Comm_free_keyval"),
    ("Attr_put", "Comm_set_attr"), ("Attr_get", "Comm_get_attr"),
    ("Attr_delete", "Comm_delete_attr"),
):  # fmt: skip
    ENTRIES[_old] = ENTRIES[_new]
