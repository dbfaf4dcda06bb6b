"""Starting processes (MPI 4.1, section 11.8): `Spawn` and `Spawn_multiple`, as a mixin of
`Intracomm`.

The creator of the simulation defines the meaning of a command, and its place on the machine:
`SPAWN` of a universe is a function that takes the calling rank and a list of `Command`. It returns
the world of new ranks, which have not begun, or raises `CannotSpawn`. The new ranks call `arrive`
before their program begins.

In simulated time, the root broadcasts the command to the new processes. The parents continue when
they have the result from the root.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from pysmpi.mpi.base import errhandlers
from pysmpi.mpi.base.constants import ERR_ARG, ERR_SPAWN, SUCCESS
from pysmpi.mpi.base.exceptions import cint, fail, named, sequence
from pysmpi.mpi.base.info import INFO_NULL, Info, check_info, pairs
from pysmpi.mpi.base.ranks import Rank, Universe, World, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.buffers.spellings import is_integral
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.communicators.intercomm_creation import broadcast
from pysmpi.mpi.groups.communicator import Communicator, connect, new_communicator
from pysmpi.mpi.groups.handle_types import IntercommHandle as Intercomm
from pysmpi.mpi.internal_errors import touches_program
from pysmpi.mpi.processes.connecting import ORIGIN, broadcast_result, check_root
from pysmpi.python.records import record

COMMAND_BYTES = 256  # data of a launcher besides the words of the command
_LAUNCH = 0  # tag of the broadcast of the command, the only one in its communicator


@record
class Command:
    """A program to start: its words, its number of processes, and the hints of the caller."""

    command: str
    arguments: list[str] = field(default_factory=list)
    maxprocs: int = 1
    hints: dict[str, str] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of the words."""
        return sum(len(os.fsencode(word)) + 1 for word in (self.command, *self.arguments))


class CannotSpawn(builtins.Exception):
    """No process was started; the argument is the reason."""


class Spawning:
    """The calls that start processes, as a mixin of `Intracomm`."""

    __slots__ = ()

    _usable: Callable[[], Communicator]
    _wrap: Callable[[Any], Any]

    @mpi.process("11.8.2")
    def Spawn(
        self,
        command: os.PathLike[str] | os.PathLike[bytes] | str | bytes,
        args: Sequence[str] | None = None,
        maxprocs: int = 1,
        info: Info = INFO_NULL,
        root: int = 0,
        errcodes: list[int] | None = None,
    ) -> Intercomm:
        """Spawn instances of a single MPI application."""
        communicator = self._usable()
        count = cint(maxprocs)
        check_info(info)
        root = check_root(self, communicator, root)
        commands = None
        if communicator.rank_of(current().pid) == root:
            words = _words(args)
            commands = [Command(_path(command), words, count, pairs(info))]
        handle = self._spawn(communicator, root, commands)
        if errcodes is not None:
            errcodes[:] = [SUCCESS] * count
        return handle

    @mpi.process("11.8.3")
    def Spawn_multiple(
        self,
        command: Sequence[os.PathLike[str] | os.PathLike[bytes] | str | bytes],
        args: Sequence[Sequence[str]] | None = None,
        maxprocs: Sequence[int] | None = None,
        info: Sequence[Info] | Info = INFO_NULL,
        root: int = 0,
        errcodes: list[list[int]] | None = None,
    ) -> Intercomm:
        """Spawn instances of multiple MPI applications."""
        communicator = self._usable()
        root = check_root(self, communicator, root)
        commands = None
        counts: list[int] = []
        if communicator.rank_of(current().pid) == root:
            names = _commands(command)
            counts = _counts(maxprocs, len(names))
            commands = [
                Command(_path(name), words, count, hints)
                for name, words, count, hints in zip(
                    names,
                    _word_lists(args, len(names)),
                    counts,
                    _hint_lists(info, len(names)),
                    strict=True,
                )
            ]
        elif errcodes is not None:
            counts = _counts(maxprocs, len(maxprocs or ()))
        handle = self._spawn(communicator, root, commands)
        if errcodes is not None:
            errcodes[:] = [[SUCCESS] * count for count in counts]
        return handle

    def _spawn(
        self, communicator: Communicator, root: int, commands: list[Command] | None
    ) -> Intercomm:
        rank = current()
        found: tuple[int, object] | None = None
        if commands is not None:
            rank.process.finish_compute()
            found = _started(rank, communicator, commands)
        code, made = broadcast_result(rank, communicator, root, "comm_spawn", found)
        if code:
            fail(code, made, self)
        handle: Intercomm = self._wrap(made)
        errhandlers.inherit(self, handle)  # type: ignore[arg-type]
        return handle


# Starts the processes of a universe.
SPAWN: StateSlot[Universe, Callable[[Rank, list[Command]], World]] = StateSlot(Universe)


def _started(rank: Rank, communicator: Communicator, commands: list[Command]) -> tuple[int, object]:
    """Start processes; return the parents' side of the new communicator, or the error."""
    for command in commands:
        if command.maxprocs < 0:
            return ERR_ARG, f"maxprocs is {command.maxprocs}, expected one that is not negative"
    spawn = SPAWN.peek(rank.universe)
    if spawn is None:
        return ERR_SPAWN, "this simulation cannot start processes"
    try:
        world = spawn(rank, commands)
    except CannotSpawn as error:
        return ERR_SPAWN, str(error)
    children = range(world.first, world.first + world.size)
    ours, theirs = (
        new_communicator(rank.universe, communicator.group),
        new_communicator(rank.universe, children),
    )
    connect(ours, theirs)
    origin = ORIGIN.of(world)
    origin.parent = theirs
    # The launcher's own communicator: the root, then all started processes.
    launcher = new_communicator(rank.universe, [rank.pid, *children])
    nbytes = COMMAND_BYTES + sum(command.nbytes for command in commands)
    origin.launcher, origin.nbytes = launcher, nbytes
    broadcast(rank, launcher, 0, 0, nbytes, _LAUNCH)
    return SUCCESS, ours


def arrive(rank: Rank) -> None:
    """A new process waits for the command that starts it."""
    origin = ORIGIN.of(rank.world)
    launcher = origin.launcher
    assert launcher is not None
    rank.enter()
    try:
        broadcast(rank, launcher, launcher.rank_of(rank.pid), 0, origin.nbytes, _LAUNCH)
    finally:
        rank.leave()


# The arguments, as mpi4py takes them.


@touches_program
def _path(command: Any) -> str:
    try:
        return os.fsdecode(command)
    except TypeError as error:
        raise TypeError(f"{named(command, 'command')}{error}") from None


@touches_program
def _words(args: Any) -> list[str]:
    if args is None:
        return []
    if isinstance(args, (str, bytes)):
        args = [args]
    return [word.decode() if isinstance(word, bytes) else _text(word) for word in args]


def _text(word: object) -> str:
    if not isinstance(word, str):
        raise TypeError(f"args: expected str or bytes, {type(word).__name__} found")
    return word


@touches_program
def _commands(command: Any) -> list[Any]:
    if isinstance(command, (str, bytes)) or hasattr(command, "__fspath__"):
        raise ValueError("command: expecting a sequence of path-like")
    return list(command)


@touches_program
def _word_lists(args: Any, size: int) -> list[list[str]]:
    if args is None:
        return [[] for _ in range(size)]
    if isinstance(args, (str, bytes)):
        return [_words(args) for _ in range(size)]
    lists = list(args)
    if len(lists) != size:
        raise ValueError(f"args: expecting {size} items, got {len(lists)}")
    return [_words(words) for words in lists]


def _counts(maxprocs: Any, size: int) -> list[int]:
    if maxprocs is None:
        return [1] * size
    if is_integral(maxprocs):
        return [cint(maxprocs)] * size
    counts = [cint(count) for count in sequence(maxprocs)]
    if len(counts) != size:
        raise ValueError(f"maxprocs: expecting {size} items, got {len(counts)}")
    return counts


def _hint_lists(info: Any, size: int) -> list[dict[str, str]]:
    if info is None:
        return [{} for _ in range(size)]
    if isinstance(info, Info):
        return [pairs(info) for _ in range(size)]
    hints = sequence(info)
    if len(hints) != size:
        raise ValueError(f"info: expecting {size} items, got {len(hints)}")
    return [pairs(check_info(item)) for item in hints]
