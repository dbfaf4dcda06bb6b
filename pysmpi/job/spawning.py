"""Processes that a program spawns: their programs, and their places on the machine.

New ranks get the places that a larger job would give to its last ranks: unused cores or, if there
are none, the cores with the fewest ranks. With a host file, the number of ranks at one time is
limited to those of the file. Of the reserved info keys (MPI 4.1, section 11.8.4), `host`, `wdir`,
`path` and `soft` have an effect, and of Open MPI's `hostfile`, `add-hostfile`, `map_by` and `env`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import field

from pysmpi.errors import UsageError
from pysmpi.isolation.loading.loader import RankProgram
from pysmpi.job.command_lines import program_of
from pysmpi.job.options import Options
from pysmpi.mpi.base.ranks import Rank, World
from pysmpi.mpi.processes.spawning import CannotSpawn, Command
from pysmpi.platform.config import Settings
from pysmpi.platform.model import Platform
from pysmpi.platform.placement import Slot, place, read_hostfile
from pysmpi.python.records import record
from pysmpi.ranks.simulation import Simulation
from pysmpi.text import whole


@record
class ProgramPart:
    """The processes of one command: its program, their places, their directory, variables."""

    program: RankProgram
    slots: list[Slot]
    appnum: int
    directory: str | None = None
    variables: dict[str, str] = field(default_factory=dict)


@record
class Segment:
    """One of the programs that a job starts with: its ranks, directory, variables."""

    program: RankProgram
    ranks: int
    directory: str | None = None
    variables: dict[str, str] = field(default_factory=dict)


class Spawner:
    """Starts worlds of new ranks in a job; the function that MPI calls."""

    def __init__(
        self,
        simulation: Simulation,
        platform: Platform,
        options: Options,
        settings: Settings,
        start_world: Callable[[list[ProgramPart]], World],
    ) -> None:
        self.simulation = simulation
        self.platform = platform
        self.options = options
        self.settings = settings
        self.start_world = start_world
        self.taken: dict[Slot, int] = {}  # by the call that is under way

    def __call__(self, rank: Rank, commands: Sequence[Command]) -> World:
        """A world of the processes of all commands, for a caller."""
        self.taken = {}
        try:
            parts = [self._part(command, number) for number, command in enumerate(commands)]
            for part in parts:
                part.program.configure(self.settings)
                part.program.prepare()
        except UsageError as error:
            raise CannotSpawn(str(error)) from None
        except SyntaxError as error:
            raise CannotSpawn(f"{error.filename}:{error.lineno}: {error.msg}") from None
        if not any(part.slots for part in parts):
            raise CannotSpawn("maxprocs: expected at least one process in all")
        return self.start_world(parts)

    def universe_size(self) -> int | None:
        """The largest number of ranks at one time, if there is a limit."""
        hostfile = self.options.hostfile
        if hostfile is None:
            return None
        return sum(share.ranks for share in read_hostfile(self.platform, hostfile))

    def _part(self, command: Command, appnum: int) -> ProgramPart:
        hints = command.hints
        directory = hints.get("wdir")
        if directory is not None:
            directory = os.path.abspath(directory)
            if not os.path.isdir(directory):
                raise UsageError(f"wdir: no such directory: {directory}")
        program = program_of(command.command, command.arguments, hints.get("path"), directory)
        # -m searches the directory of the process first.
        if directory is not None and program.path_entry == os.getcwd():
            program.path_entry = directory
        slots = self._slots(command.maxprocs, hints) if command.maxprocs else []
        return ProgramPart(program, slots, appnum, directory, _variables(hints.get("env", "")))

    # Their places.

    def _slots(self, wanted: int, hints: dict[str, str]) -> list[Slot]:
        """Places for up to `wanted` processes: the number that `soft` allows."""
        occupied = self._occupied()
        host = hints.get("host")
        if host is not None:
            return self._on_hosts(host.split(","), wanted, occupied)
        hostfile = hints.get("hostfile", hints.get("add-hostfile", self.options.hostfile))
        map_by = hints.get("map_by", self.options.map_by)
        running = sum(occupied.values())
        if hostfile is None:
            order = place(self.platform, running + wanted, None, map_by)
            return self._emptiest(order, wanted, occupied)
        allowed = sum(share.ranks for share in read_hostfile(self.platform, hostfile))
        order = place(self.platform, allowed, hostfile, map_by)
        free = _left(order, occupied)
        count = _soft(hints.get("soft"), wanted, len(free))
        if not count:
            raise CannotSpawn(f"{wanted} processes: {hostfile} has room for {len(free)} more")
        return self._take(free[:count])

    def _on_hosts(self, names: list[str], wanted: int, occupied: dict[Slot, int]) -> list[Slot]:
        hosts = [self.platform.host(name.strip()) for name in names]
        order = [
            Slot(host, core)
            for core in range(max(host.cores for host in hosts))
            for host in hosts
            if core < host.cores
        ]
        return self._emptiest(order, wanted, occupied)

    def _emptiest(self, order: list[Slot], wanted: int, occupied: dict[Slot, int]) -> list[Slot]:
        """The slots with the fewest ranks, some of them repeatedly if there are too few."""
        distinct = list(dict.fromkeys(order))
        load = {slot: occupied.get(slot, 0) for slot in distinct}
        chosen: list[Slot] = []
        level = min(load.values())
        while len(chosen) < wanted:
            for slot in distinct:
                if load[slot] == level and len(chosen) < wanted:
                    load[slot] += 1
                    chosen.append(slot)
            level += 1
        return self._take(chosen)

    def _take(self, slots: list[Slot]) -> list[Slot]:
        for slot in slots:
            self.taken[slot] = self.taken.get(slot, 0) + 1
        return slots

    def _occupied(self) -> dict[Slot, int]:
        """The number of ranks on each slot."""
        simulation = self.simulation
        found = dict(self.taken)
        for rank in simulation.waiting():
            slot = simulation.slots[rank.process.slot]
            found[slot] = found.get(slot, 0) + 1
        return found


def _left(order: list[Slot], occupied: dict[Slot, int]) -> list[Slot]:
    """The remaining slots; a slot may occur several times."""
    occupied = dict(occupied)
    free = []
    for slot in order:
        if occupied.get(slot, 0):
            occupied[slot] -= 1
        else:
            free.append(slot)
    return free


def _soft(text: str | None, wanted: int, free: int) -> int:
    """The number of processes to start with room for `free`; 0 if none can start.

    `soft` is a list of acceptable numbers and ranges `first:last[:step]`.
    """
    if wanted <= free:
        return wanted
    allowed: set[int] = set()
    for item in (text or "").split(","):
        words = item.strip().split(":")
        if not all(whole(word.strip()) is not None for word in words) or len(words) > 3:
            continue
        numbers = [int(word) for word in words]
        first, last = numbers[0], numbers[min(1, len(numbers) - 1)]
        step = numbers[2] if len(numbers) == 3 else 1
        if step:
            allowed.update(range(first, min(last, wanted) + 1, step))
    return max((count for count in allowed if 0 < count <= free), default=0)


def _variables(text: str) -> dict[str, str]:
    """Open MPI's hint `env`: lines of NAME=VALUE."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals:
            found[name.strip()] = value
    return found
