"""Processes, ports, sessions, generalized requests (MPI 4.1, chapters 11 and 13)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pysmpi.abi.entry import entry
from pysmpi.abi.process import here
from pysmpi.abi.values import (
    free,
    give,
    give_request,
    give_text,
    handles,
    read_integers,
    text,
    write_integer,
    write_integers,
)

if TYPE_CHECKING:
    from mpi4py import MPI
else:
    from pysmpi.mpi import MPI

PORT_NAME = 256  # bytes


def _words(address: int) -> list[str]:
    """A list of strings that ends with NULL."""
    words = []
    while address:
        entry = read_integers(address, 1, 8)[0]
        if not entry:
            break
        words.append(text(entry))
        address += 8
    return words


@entry
def Comm_spawn(
    command: int, argv: int, maxprocs: int, info: MPI.Info, root: int, comm: MPI.Intracomm,
    intercomm: int, array_of_errcodes: int,
) -> None:  # fmt: skip
    if comm.Get_rank() == root:
        children = comm.Spawn(text(command), _words(argv), maxprocs, info, root)
    else:
        children = comm.Spawn("", root=root)
    _give_children(children, intercomm, array_of_errcodes)


@entry
def Comm_spawn_multiple(
    count: int, array_of_commands: int, array_of_argv: int, array_of_maxprocs: int,
    array_of_info: int, root: int, comm: MPI.Intracomm, intercomm: int, array_of_errcodes: int,
) -> None:  # fmt: skip
    if comm.Get_rank() == root:
        commands = [text(each) for each in read_integers(array_of_commands, count, 8)]
        lists = read_integers(array_of_argv, count, 8) if array_of_argv else [0] * count
        children = comm.Spawn_multiple(
            commands, [_words(each) for each in lists], read_integers(array_of_maxprocs, count),
            handles(array_of_info, count, "I"), root,
        )  # fmt: skip
    else:
        children = comm.Spawn_multiple([], root=root)
    _give_children(children, intercomm, array_of_errcodes)


def _give_children(children: MPI.Intercomm, intercomm: int, codes: int) -> None:
    """Give each rank the communicator and a code for each process: all have started."""
    give(intercomm, children)
    if codes:
        write_integers(codes, [MPI.SUCCESS] * children.Get_remote_size())


@entry
def Comm_get_parent(parent: int) -> None:
    give(parent, MPI.Comm.Get_parent())


@entry
def Comm_disconnect(comm: int) -> None:
    free(comm, "C", MPI.COMM_NULL, "Disconnect")


@entry
def Comm_join(fd: int, intercomm: int) -> None:
    give(intercomm, MPI.Comm.Join(fd))


@entry
def Comm_accept(
    port_name: int, info: MPI.Info, root: int, comm: MPI.Intracomm, newcomm: int
) -> None:
    name = text(port_name) if comm.Get_rank() == root else ""
    give(newcomm, comm.Accept(name, info, root))


@entry
def Comm_connect(
    port_name: int, info: MPI.Info, root: int, comm: MPI.Intracomm, newcomm: int
) -> None:
    name = text(port_name) if comm.Get_rank() == root else ""
    give(newcomm, comm.Connect(name, info, root))


@entry
def Open_port(info: MPI.Info, port_name: int) -> None:
    give_text(port_name, 0, MPI.Open_port(info), PORT_NAME)


@entry
def Close_port(port_name: int) -> None:
    MPI.Close_port(text(port_name))


@entry
def Publish_name(service_name: int, info: MPI.Info, port_name: int) -> None:
    MPI.Publish_name(text(service_name), text(port_name), info)


@entry
def Unpublish_name(service_name: int, info: MPI.Info, port_name: int) -> None:
    MPI.Unpublish_name(text(service_name), text(port_name), info)


@entry
def Lookup_name(service_name: int, info: MPI.Info, port_name: int) -> None:
    give_text(port_name, 0, MPI.Lookup_name(text(service_name), info), PORT_NAME)


# Sessions.


@entry
def Session_init(info: MPI.Info, errhandler: MPI.Errhandler, session: int) -> None:
    give(session, MPI.Session.Init(info, errhandler))


@entry
def Session_finalize(session: int) -> None:
    free(session, "S", MPI.SESSION_NULL, "Finalize")


@entry
def Session_get_num_psets(session: MPI.Session, info: MPI.Info, npset_names: int) -> None:
    write_integer(npset_names, session.Get_num_psets(info))


@entry
def Session_get_nth_pset(
    session: MPI.Session, info: MPI.Info, n: int, pset_len: int, pset_name: int
) -> None:
    name = session.Get_nth_pset(n, info)
    room = read_integers(pset_len, 1)[0]
    if room > 0:
        give_text(pset_name, 0, name, room)
    write_integer(pset_len, len(name.encode()) + 1)


@entry
def Session_get_info(session: MPI.Session, info_used: int) -> None:
    give(info_used, session.Get_info())


@entry
def Session_get_pset_info(session: MPI.Session, pset_name: int, info: int) -> None:
    give(info, session.Get_pset_info(text(pset_name)))


# Generalized requests.


def _checked(code: int) -> None:
    if code & 0xFFFFFFFF:
        raise MPI.Exception(code & 0x7FFFFFFF)


def _query(function: int, state: int) -> Callable[[MPI.Status], None]:
    def query(status: MPI.Status) -> None:
        address = MPI._addressof(status)
        _checked(here().call(function, state, address))

    return query


def _free(function: int, state: int) -> Callable[[], None]:
    return lambda: _checked(here().call(function, state))


def _cancel(function: int, state: int) -> Callable[[bool], None]:
    return lambda complete: _checked(here().call(function, state, int(complete)))


@entry
def Grequest_start(query: int, free: int, cancel: int, state: int, request: int) -> None:
    made: Any = MPI.Grequest.Start(_query(query, state), _free(free, state), _cancel(cancel, state))
    give_request(request, made)


@entry
def Grequest_complete(request: Any) -> None:
    request.Complete()
