"""Compiled programs that call MPI: a copy of the executable for each rank, with its own globals."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from signal import Signals
from typing import Any
from weakref import WeakSet

from pysmpi.abi import connection, elf, engine, images, interfaces, sites
from pysmpi.abi.process import C_OPTIONS, CompiledProcess, put
from pysmpi.abi.timer import EntryTimer
from pysmpi.errors import UsageError
from pysmpi.io.reading import read_bytes
from pysmpi.isolation.kinds.environment import variables_here
from pysmpi.isolation.loading.loader import RankProgram
from pysmpi.isolation.loading.needed_libraries import located
from pysmpi.mpi.base.ranks import current
from pysmpi.mpi.processes import environment, inactive
from pysmpi.platform.units import format_size

STACK = 256 << 20  # bytes of addresses for the stack of a rank; only what it uses is memory
LEAST_STACK = 64 << 10
VARIABLES = frozenset({"setenv", "putenv", "unsetenv", "clearenv", "environ"})
# Functions that begin an interpreter. A process has one, in which pysmpi runs.
EMBEDDING = frozenset({"Py_Initialize", "Py_InitializeEx", "Py_InitializeFromConfig"})
EMBEDDING |= {"Py_Main", "Py_BytesMain"}
_BUFFERED, _LINES = 0, 1  # _IOFBF, _IOLBF


def _crash(
    stack: int,
    signal: int,
    site: int,
    caller: int,
    full: bool,
    library: str | None,
    name: str | None,
) -> None:
    """End the job as a signal ends a process of a real MPI."""
    what = f"got signal {Signals(-signal).name}"
    if full:
        what = f"used more than its stack of {format_size(stack)} (contexts/stack-size)"
    if site:
        where = f"at {sites.shown(site)}"
    else:
        where = f"in {name or 'a function'} of {os.path.basename(library or 'a library')}"
        if caller:
            where += f", called at {sites.shown(caller)}"
    current().abort(128 - signal, f"{what} {where}")


class CompiledProgram(RankProgram):
    """An executable that was linked with an MPI library."""

    stack = STACK
    shared = False  # whether ranks share the data of the program, too
    plan = images.ImagePlan()
    chosen: tuple[str, ...] = ()  # libraries of which ranks have copies beside the usual ones

    def __init__(self, path: str, arguments: Sequence[str] = ()) -> None:
        self.name = path
        self.path = os.path.abspath(path)
        self.arguments = [path, *arguments]
        self.processes: WeakSet[CompiledProcess] = WeakSet()
        self.loaded: Any = ()  # what ranks share

    def configure(self, settings: Any) -> bool:
        self.stack = settings.value("contexts/stack-size")
        if self.stack < LEAST_STACK:
            raise UsageError(
                f"contexts/stack-size: expected {format_size(LEAST_STACK)} or more for a compiled "
                f"program, got {format_size(self.stack)}"
            )
        how, libraries = settings.value("smpi/privatization")
        self.shared = how == "none"
        self.chosen = (*libraries, *settings.value("smpi/privatize-libs", ()))
        return True

    def prepare(self) -> None:
        self.executable = elf.read(self.name, read_bytes(self.path))
        self.executable.path = self.path
        embedding = EMBEDDING & elf.undefined(self.executable)
        if embedding:
            raise elf.refused(
                self.name,
                f"one that embeds Python ({min(embedding)}), run its code in Python as a program",
            )
        connection.start()
        self.planner = images.ImagePlanner(self.name, self.chosen)
        self.plan = self.planner.plan(self.executable)
        self.planner.check()
        for part in self.plan.parts:
            why = elf.of_modules(part.library)
            if why is not None:
                raise UsageError(f"{part.library.path}: {why}")
        # Variables of a process are the engine's.
        self.c_functions = frozenset(
            name for part in self.plan.parts for name in elf.undefined(part.library)
        ).difference(VARIABLES)
        images.share(self.name, self.plan)
        try:
            interfaces.attach(self.executable.libraries, engine.core())
        except OSError as error:
            raise UsageError(f"{self.name}: {error}") from None

    def close(self) -> None:
        self.plan.close()

    def main(self) -> Callable[[], object]:
        return self._run

    def _run(self) -> None:
        rank = current()
        timer = None
        if rank.timer is not None:
            timer = rank.timer = EntryTimer(rank.timer, rank)
        process = CompiledProcess(self.stack)
        process.program = self
        process.kept = self.last
        put(process)
        inactive.OWN_GUARD.put(rank, process.guard)
        environment.start(options=C_OPTIONS)
        base = self._load(process)
        words = tuple(os.fsencode(word) for word in self.arguments or ())
        variables = tuple([b"=".join(pair) for pair in variables_here().items()])
        size = sum(len(text) + 10 for text in (*words, *variables))
        if 2 * size > self.stack:
            raise UsageError(
                f"contexts/stack-size: {self.name} has {size} bytes of arguments and variables, "
                f"expected at most half of its stack of {format_size(self.stack)}"
            )
        if timer is not None:
            timer.start()  # the work so far was not the program's
            process.timer = timer
        try:
            status = process.run(base + self.executable.entry, words, variables)
        finally:
            if timer is not None:
                timer.enter()
            process.close()
        if isinstance(status, tuple):
            _crash(self.stack, *status)
        elif status:
            sys.exit(status)

    def _load(self, process: CompiledProcess) -> int:
        buffering = _LINES if os.isatty(1) else _BUFFERED

        # The second rank and those after it share what the first one has loaded.
        sharing = (2 if self.processes else 1) if self.shared else 0

        def load(
            path: str, number: int, size: int, libraries: tuple[tuple[str, int, int], ...]
        ) -> tuple[int, ...]:
            self.loaded = path, number, size, libraries
            return process.load(buffering, 2, sharing, path, number, size, libraries, -1)[0]

        try:
            if sharing == 2:
                base = load(*self.loaded)[0]
            elif sharing or len(self.plan.parts) > 1:
                base = images.load(self.plan, process.loaded, load)
            else:
                load_alone = partial(process.load, buffering, 2, 0)
                base = images.load_alone(self.plan, process.loaded, load_alone)
        except OSError as error:
            raise UsageError(f"{self.name}: cannot be loaded: {error}") from None
        self.processes.add(process)
        return base

    def open(self, process: CompiledProcess, name: str) -> int:
        """The handle of a library that a program opens by a name; 0 if the loader shall find it."""
        origin = os.path.dirname(os.path.realpath(self.path))
        path = located(name, tuple(self.executable.paths), origin) if "/" not in name else name
        if path is None or not os.path.isfile(path):
            return 0
        path = os.path.realpath(path)
        ours = elf.replacement(os.path.basename(path))
        if ours is not None:
            interfaces.attach({ours}, engine.core())
            return engine.handle(str(interfaces.file_of(ours)))
        if path not in process.loaded:
            library = elf.read_library(path)
            if library is None or not self.planner.private(os.path.basename(path), path):
                return engine.handle(path)
            try:
                plan = self.planner.plan(library)
                images.share(self.name, plan)
                images.load(plan, process.loaded, process.open)
            except (OSError, UsageError):
                return 0  # the loader says why
        return engine.handle(process.loaded[path], False)
