"""The one interpreter that all ranks share, made to look like one for each of them."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterable
from functools import partial
from types import ModuleType
from typing import Any

from greenlet import GreenletExit

from pysmpi.errors import UsageError
from pysmpi.isolation import finalizers, simulator, teardown
from pysmpi.isolation.exchange import Exchange
from pysmpi.isolation.kinds import (
    attributes,
    c_state,
    environment,
    exits,
    forks,
    own_streams,
    randomness,
    registries,
    replacement,
    sent_signals,
    settings,
    system,
    thread_hooks,
    tools,
    warning_filters,
)
from pysmpi.isolation.kinds.rank_environment import RankEnvironment
from pysmpi.isolation.loading import linked_mpi, mpi4py_package
from pysmpi.isolation.loading.imports import ImportSystem
from pysmpi.isolation.loading.libraries import LibraryPatches, PatchedRun
from pysmpi.isolation.loading.loader import FunctionProgram, RankProgram
from pysmpi.isolation.loading.own_code import OwnCode
from pysmpi.isolation.loading.rules import Rules
from pysmpi.isolation.loading.shared_state import SharedState
from pysmpi.isolation.program_errors import EARLY, strip
from pysmpi.isolation.rank_state import MISSING
from pysmpi.isolation.restoring import Restoring
from pysmpi.isolation.threads import fibers as threads
from pysmpi.isolation.threads.locks import SharedTurns
from pysmpi.isolation.versions import Versions
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.processes import inactive
from pysmpi.patching.patches import Patches
from pysmpi.python import facts
from pysmpi.python.frames import forget_sites
from pysmpi.shadow.setup import Shadowing
from pysmpi.time import clock, cpu_time
from pysmpi.time.stopwatch import Stopwatch
from pysmpi.waiting import outside
from pysmpi.waiting.outside.children import Children

_running: list[Interpreter] = []


def _copier() -> linked_mpi.Copier | None:
    """The loader of libraries that call MPI; None where compiled code cannot be loaded."""
    library = importlib.util.find_spec("pysmpi.abi.engine")
    if library is None or library.origin is None:
        return None

    def copy_for_rank(path: str) -> str:
        from pysmpi.abi import libraries

        return libraries.copy_for_rank(path)

    return linked_mpi.Copier(copy_for_rank, library.origin)


class Interpreter:
    """The changes of a run in the interpreter; a context manager that undoes them.

    Inside it, a rank with `RankEnvironment` in `rank.program` finds its own `sys`, `time`, modules
    and so on; code outside any rank sees no change.

    `mpi` is the module that ranks import as `mpi4py.MPI`; `arrive` is called at each such import.
    `private` and `shared` are names of modules, see `rules.py`. `poll_cost` is in seconds.
    `start_fiber(rank, body, ended)` starts a thread of a rank; without it threads are real ones.
    `shadowing` holds the sampled parts of the program. `own_code` copies code for each rank.
    """

    def __init__(
        self,
        program: RankProgram,
        *,
        mpi: ModuleType | None = None,
        arrive: Callable[[], object] | None = None,
        private: Iterable[str] = (),
        shared: Iterable[str] = (),
        poll_cost: float = clock.POLL_COST,
        stopwatch: Stopwatch | None = None,
        start_fiber: threads.StartThread | None = None,
        shadowing: Shadowing | None = None,
        own_code: OwnCode | None = None,
    ) -> None:
        self.program = program
        self.programs = [program]  # with those of further ranks
        self.mpi = mpi
        self.arrive = arrive
        self.rules = Rules([*program.private, *private], shared)
        self.poll_cost = poll_cost
        self.stopwatch = stopwatch
        self.start_fiber = start_fiber
        self.shadowing = shadowing
        self.own_code = own_code
        self.threads: threads.Threads | None = None
        self.patches = Patches()
        # The hook of a notebook, for example, gets the error of the run, not those of ranks.
        self.callers_hook: object = sys.excepthook
        simulator.begin()
        self.exchange: Exchange | None = None
        self.own_streams: own_streams.OwnStreams | None = None
        self.shared_state: SharedState | None = None
        self.imports: ImportSystem | None = None
        self.children = Children()

    def __enter__(self) -> Interpreter:
        if _running:
            raise UsageError("a simulation is running already, and one at a time can run")
        _running.append(self)
        try:
            self._install()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _install(self) -> None:
        patches = self.patches
        restoring = Restoring(patches.places)
        patches.call_back(restoring.restore)  # last, when all replacements are undone
        patches.call_back(inactive.end)
        if self.shadowing is not None:
            self.program.rewriter = self.shadowing.rewriter
        self.program.prepare()
        if self.mpi is not None:
            mpi4py_package.take_over(patches, function=isinstance(self.program, FunctionProgram))
        table = sys.modules
        outer: dict[str, Any] = {}
        if not isinstance(self.program, FunctionProgram):
            # A function lives in modules of its caller, a script should not see them.
            outer = self.rules.private_of(table)
            self.rules.kinds.clear()  # programs may find packages with these names in other places
        self.exchange = exchange = Exchange(table, outer, Versions)
        self.own_streams = own_streams.install(patches, exchange)
        imports = self.imports = ImportSystem(self.rules, exchange, self.stopwatch)
        imports.begin_own.append(self.own_streams.give)
        imports.own_code = self.own_code
        copier = _copier()
        if self.mpi is not None:
            mpi4py_package.provide(
                patches, imports, self.mpi, self.arrive or (lambda: None),
                None if copier is None else copier.library,
            )  # fmt: skip
        clock.install(patches, self.poll_cost)
        cpu_time.install(patches, self.poll_cost)
        exits.install(patches, imports)
        finalizers.install(patches)
        environment.install(patches, exchange)
        settings.install(patches, exchange)
        sent_signals.install(patches, exchange)
        replacement.install(patches)
        warning_filters.install(patches, exchange, imports)
        separate = registries.Registries(exchange, imports)
        registries.install(patches, separate)
        hooks = thread_hooks.Hooks(patches)
        self.state_of_c = c_state.CState(exchange)
        of_rooms: list[dict[str, Callable[..., object]]] = [
            outside.install(patches, exchange, self.stopwatch, self.children),
            linked_mpi.install(patches, imports, copier) if self.mpi is not None else {},
            tools.install(patches, exchange, hooks),
        ]
        if self.start_fiber is not None and facts.holds("threads"):
            self.threads = threads.install(patches, self.start_fiber)
        for when_loaded in of_rooms:
            for name, patch in when_loaded.items():
                imports.when_loaded(name, partial(patch, patches))
        parts = (separate, self.state_of_c, self.poll_cost)
        LibraryPatches(PatchedRun(patches, exchange, imports, hooks, self.threads, *parts))
        imports.install(patches)
        self.shared_state = SharedState(imports)
        imports.end_shared.append(self.shared_state.note)
        imports.end_shared.append(restoring.note)
        for part in (randomness.SharedGenerators(), SharedTurns()):
            imports.begin_shared.append(part.begin)
            imports.end_shared.append(part.end)
        if self.shadowing is not None:
            self.shadowing.install(patches, imports, exchange)
        for name in system.LATER:
            imports.when_loaded(name, partial(system.watch_later, exchange))
        system.install(patches, exchange)
        attributes.install(patches, exchange, imports)
        patches.call_back(exchange.close)

    def __exit__(self, *exception: object) -> None:
        try:
            self.children.end(well=False)
            self.patches.undo()
        finally:
            for program in self.programs:
                program.close()
            forget_sites()
            _running.remove(self)

    def begin(self, program: RankProgram | None = None) -> Callable[[], object]:
        """Prepare the running rank; the function that runs its program.

        `program` is a program that another one has started and prepared.
        """
        running = program or self.program
        if self.own_streams is not None:
            running.starting = self.own_streams.give
        running.exchange = self.exchange
        running.own_code = self.own_code
        self.state_of_c.note(running.c_functions)
        return running.main()

    def end(
        self,
        rank_environment: RankEnvironment,
        error: BaseException | None,
        program: RankProgram | None = None,
    ) -> None:
        """The end of the simulated process, after the program or the exception that ended it.

        An exception that the rank's own `sys.excepthook` has shown becomes `SystemExit(1)`.
        No function of the program is called after `os._exit`, or while the rank is stopped from
        outside.
        """
        try:
            if not simulator.simulates():
                forks.leave()
            if isinstance(error, exits.HardExit | GreenletExit | KeyboardInterrupt):
                return
            if error is not None and not isinstance(error, SystemExit):
                self._fail(rank_environment, error)
                return
            if error is not None:
                traceback.clear_frames(error.__traceback__)
            self._end(rank_environment, program or self.program, error)
        finally:
            for look in self.imports.at_end if self.imports is not None else ():
                look(rank_environment.state)
            if self.own_streams is not None:
                self.own_streams.flush(rank_environment)

    def _end(
        self,
        rank_environment: RankEnvironment,
        program: RankProgram,
        error: SystemExit | None,
    ) -> None:
        self._show_early(rank_environment, error)
        self.finish(rank_environment, error)
        self._let_go(rank_environment, program)

    def _show_early(self, rank_environment: RankEnvironment, error: BaseException | None) -> None:
        """Show an error now if the rank then waits for its threads, as Python does."""
        threads = self.threads
        if error is not None and threads is not None and threads.awaited(rank_environment):
            EARLY.of(current().universe).show(rank_environment.number, error)

    def _fail(self, rank_environment: RankEnvironment, error: BaseException) -> None:
        """An exception has ended the program; `SystemExit` if the program has shown it."""
        hook: Any = sys.excepthook
        if hook in (None, sys.__excepthook__) or hook is self.callers_hook:
            self._show_early(rank_environment, error)
            self.finish(rank_environment, error)
            return
        hook(type(error), error, strip(error.__traceback__))
        self.finish(rank_environment, error)
        raise SystemExit(1) from None

    def admit(self, program: RankProgram) -> None:
        """Know the private modules of one more program."""
        self.programs.append(program)
        for name in program.private:
            self.rules.ordered.setdefault(name, True)

    def finish(self, rank_environment: RankEnvironment, error: BaseException | None = None) -> None:
        """The end of a Python process, for the running rank; `error` has ended its program.

        Waits for its threads, then calls its exit functions.
        """
        if self.threads is not None:
            self.threads.finish(rank_environment, error)
        exits.run_exit_functions(rank_environment)

    def _let_go(self, rank_environment: RankEnvironment, program: RankProgram) -> None:
        # The return value may need modules that the function has imported.
        if not isinstance(program, FunctionProgram):
            assert self.exchange is not None
            self.exchange.collect()
            modules = rank_environment.state.modules.values()
            shared = (MISSING, self.mpi)
            code = getattr(program or self.program, "code", None)
            teardown.let_go(
                [module for module in modules if module not in shared],
                search=(code is not None and finalizers.defines_finalizer(code)),
            )

    def rank_ended(self, rank: Rank) -> None:
        """Let go of the modules of a rank."""
        assert self.exchange is not None
        if rank.program is not None:
            self.exchange.forget(rank.program.state)
