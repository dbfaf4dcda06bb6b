"""Ports and service names (MPI 4.1, sections 11.9.2 and 11.9.4): meeting points of processes.

All ranks of a simulation know them, in every world. They cost no time: a request to a name server
is not communication between processes.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from pysmpi.kernel.requests import KernelRequest
from pysmpi.mpi.base.constants import ERR_NAME, ERR_PORT, ERR_SERVICE
from pysmpi.mpi.base.exceptions import cstring, fail
from pysmpi.mpi.base.info import INFO_NULL, Info, check_info
from pysmpi.mpi.base.ranks import Rank, Universe, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.communicators.intercomm_creation import Half

__all__ = [
    "Open_port",
    "Close_port",
    "Publish_name",
    "Unpublish_name",
    "Lookup_name",
]


class Caller:
    """A process that waits at a port for a process at the other end.

    `half` is its data for that process; `partner` is the other end's caller, when it has arrived.
    """

    __slots__ = ("rank", "half", "gate", "partner", "context", "place")

    def __init__(self, rank: Rank, half: Half) -> None:
        self.rank = rank
        self.half = half
        self.gate = KernelRequest()
        self.partner: Caller | None = None
        self.context: Any = None  # of the two processes
        self.place = 0  # rank of this one in it


class ConnectionPort:
    """An address at which one group accepts connections of another."""

    __slots__ = ("name", "accepting", "connecting")

    def __init__(self, name: str) -> None:
        self.name = name
        self.accepting: deque[Caller] = deque()
        self.connecting: deque[Caller] = deque()


class Directory:
    """The open ports and the published names of a universe."""

    __slots__ = ("ports", "names", "opened")

    def __init__(self) -> None:
        self.ports: dict[str, ConnectionPort] = {}
        self.names: dict[str, str] = {}  # service -> port
        self.opened = 0


DIRECTORY = StateSlot(Universe, Directory)


def directory(universe: Universe) -> Directory:
    """The ports and names of a universe."""
    return DIRECTORY.of(universe)


@mpi.process("11.9.2")
def Open_port(info: Info = INFO_NULL) -> str:
    """Return an address used to connect group of processes."""
    check_info(info)
    rank = current()
    book = directory(rank.universe)
    name = f"pysmpi://{rank.host_name()}/{book.opened}"
    book.opened += 1
    book.ports[name] = ConnectionPort(name)
    return name


@mpi.process("11.9.2")
def Close_port(port_name: str) -> None:
    """Close a port."""
    name = cstring(port_name)
    if directory(current().universe).ports.pop(name, None) is None:
        fail(ERR_PORT, f"port_name {name!r} is no open port")


@mpi.process("11.9.4")
def Publish_name(service_name: str, port_name: str, info: Info = INFO_NULL) -> None:
    """Publish a service name."""
    service, port = cstring(service_name), cstring(port_name)
    check_info(info)
    names = directory(current().universe).names
    if service in names:
        fail(ERR_SERVICE, f"service_name {service!r} is published already")
    names[service] = port


@mpi.process("11.9.4")
def Unpublish_name(service_name: str, port_name: str, info: Info = INFO_NULL) -> None:
    """Unpublish a service name."""
    service = cstring(service_name)
    cstring(port_name)
    check_info(info)
    if directory(current().universe).names.pop(service, None) is None:
        fail(ERR_SERVICE, f"service_name {service!r} is not published")


@mpi.process("11.9.4")
def Lookup_name(service_name: str, info: Info = INFO_NULL) -> str:
    """Lookup a port name given a service name."""
    service = cstring(service_name)
    check_info(info)
    port = directory(current().universe).names.get(service)
    if port is None:
        fail(ERR_NAME, f"service_name {service!r} is not published")
    return port
