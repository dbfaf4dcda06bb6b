"""The procedures of MPI: their kinds, and the roles of their arguments."""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import Any, Final

VARARGS: Final = 0x04  # flags of code
VARKEYWORDS: Final = 0x08


class CallKind(Enum):
    """The effects of a call on other ranks."""

    LOCAL = "local"
    POINT_TO_POINT = "point-to-point"
    COLLECTIVE = "collective"
    ONE_SIDED = "one-sided"
    FILE = "file"
    PROCESS = "process"


class Role(Enum):
    """The meaning of an argument."""

    BUFFER = "buffer"
    PEER = "peer"
    TAG = "tag"
    COUNT = "count"
    ROOT = "root"
    COMMUNICATOR = "communicator"
    REQUEST = "request"
    MESSAGE = "message"
    WINDOW = "window"
    FILE = "file"
    GROUP = "group"
    DATATYPE = "datatype"
    OPERATOR = "operator"
    STATUS = "status"
    INFO = "info"
    OTHER = "other"


# The roles of the parameters of mpi4py by their names.
_ROLES: Final = {
    name: role
    for role, names in {
        Role.BUFFER: "buf sendbuf recvbuf obj sendobj recvobj origin result compare base inbuf "
        "outbuf inoutbuf buffer",
        Role.PEER: "dest source target_rank rank",
        Role.TAG: "tag sendtag recvtag",
        Role.COUNT: "count counts maxprocs partitions size",
        Role.ROOT: "root",
        Role.COMMUNICATOR: "comm peer_comm",
        Role.REQUEST: "request requests",
        Role.MESSAGE: "message",
        Role.GROUP: "group",
        Role.DATATYPE: "datatype etype filetype",
        Role.OPERATOR: "op",
        Role.STATUS: "status statuses",
        Role.INFO: "info",
    }.items()
    for name in names.split()
}
# The role of the handle of a method, by the family of its class.
_FAMILIES: Final = {
    "Comm": Role.COMMUNICATOR,
    "Request": Role.REQUEST,
    "Message": Role.MESSAGE,
    "Win": Role.WINDOW,
    "File": Role.FILE,
    "Group": Role.GROUP,
    "Datatype": Role.DATATYPE,
    "Op": Role.OPERATOR,
    "Status": Role.STATUS,
    "Info": Role.INFO,
}


@cache
def _role_of(owner: type) -> Role | None:
    """The role of `self` in the methods of a public class."""
    role = None
    for base in owner.__mro__:
        role = _FAMILIES.get(base.__name__, role)
    return role


class Procedure:
    """A function or method of `mpi4py.MPI`.

    `name` is the name without its class. `section` is the section of MPI 4.1 that describes it.
    `function` is the function inside the boundary. `parameters` are the names of its parameters,
    including `self` or `cls` of a method.
    """

    __slots__ = ("name", "section", "kind", "function", "parameters", "roles", "owners")

    def __init__(
        self, function: Any, kind: CallKind, section: str, roles: dict[str, Role] | None
    ) -> None:
        self.name: str = function.__name__
        self.section = section
        self.kind = kind
        self.function = function
        code = function.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & VARARGS) + bool(code.co_flags & VARKEYWORDS)
        self.parameters: tuple[str, ...] = code.co_varnames[:count]
        self.roles: dict[str, Role] = {
            name: _ROLES.get(name, Role.OTHER) for name in self.parameters
        }
        self.roles.update(roles or {})
        self.owners: list[type] = []  # the public classes that have it as a method

    @property
    def chapter(self) -> int:
        """The chapter of MPI 4.1."""
        return int(self.section.partition(".")[0] or 0)

    def belongs_to(self, owner: type) -> None:
        """Note a public class that has the procedure as a method."""
        if owner not in self.owners:
            self.owners.append(owner)
        role = _role_of(owner)
        if role is not None and self.parameters[:1] == ("self",):
            self.roles["self"] = role

    def __repr__(self) -> str:
        return f"<MPI procedure {self.function.__qualname__}>"
