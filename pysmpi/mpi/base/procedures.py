"""The procedures of MPI: their kinds, and the roles of their arguments."""

from __future__ import annotations

from enum import Enum
from functools import cached_property
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

    __hash__ = object.__hash__  # in C; that of Enum takes longer than the look-up


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


# The classes of `mpi4py.MPI`, once it is complete.
PUBLIC_CLASSES: Final[list[type]] = []


class Procedure:
    """A function or method of `mpi4py.MPI`.

    `name` is the name without its class. `section` is the section of MPI 4.1 that describes it.
    `function` is the function inside the boundary, and `boundary` is the public one. `parameters`
    are the names of its parameters, including `self` or `cls` of a method.
    """

    boundary: object

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
        self._given = roles

    @property
    def chapter(self) -> int:
        """The chapter of MPI 4.1."""
        return int(self.section.partition(".")[0] or 0)

    @cached_property
    def owners(self) -> tuple[type, ...]:
        """The public classes that have it as a method."""
        found = ((owner, getattr(owner, self.name, None)) for owner in PUBLIC_CLASSES)
        return tuple(
            owner for owner, member in found if getattr(member, "__func__", member) is self.boundary
        )

    @cached_property
    def roles(self) -> dict[str, Role]:
        """The role of each parameter; that of `self` is given by the class."""
        roles = {name: _ROLES.get(name, Role.OTHER) for name in self.parameters}
        roles.update(self._given or {})
        if self.parameters[:1] == ("self",):
            for owner in self.owners:
                for base in owner.__mro__:
                    roles["self"] = _FAMILIES.get(base.__name__, roles["self"])
        return roles

    @cached_property
    def places(self) -> dict[Role, list[tuple[int, str]]]:
        """The parameters of each role: their numbers and names."""
        found: dict[Role, list[tuple[int, str]]] = {}
        for i, name in enumerate(self.parameters):
            found.setdefault(self.roles[name], []).append((i, name))
        return found

    def __repr__(self) -> str:
        return f"<MPI procedure {self.function.__qualname__}>"
