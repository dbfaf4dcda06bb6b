"""The end of a rank: `atexit`, `weakref.finalize`, `os._exit`; and its standard input, `input`."""

from __future__ import annotations

import atexit
import builtins
import operator
import os
import sys
import weakref
from collections.abc import Callable
from typing import Any

from pysmpi.isolation.assumptions import COMPILES
from pysmpi.isolation.kinds.rank_environment import RankEnvironment, here
from pysmpi.isolation.loading.imports import ImportSystem
from pysmpi.isolation.program_errors import format_error, strip
from pysmpi.isolation.simulator import simulates
from pysmpi.mpi.base import ranks
from pysmpi.mpi.base.state import StateSlot
from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches
from pysmpi.python.frames import module_of_caller

# Ends a rank of a universe at once, with an exit status, and a description of a signal.
EXIT_HARD: StateSlot[ranks.Universe, Callable[..., None]] = StateSlot(ranks.Universe)


class HardExit(SystemExit):
    """`os._exit` in a rank that no simulation runs: ends it without its exit functions."""


def install(patches: Patches, imports: ImportSystem) -> None:
    """Give every rank its own end until the patches are undone."""
    _patch_atexit(patches, imports)
    _patch_finalize(patches, imports)
    _patch_hard_exit(patches)
    _patch_input(patches)


def _patch_atexit(patches: Patches, imports: ImportSystem) -> None:
    real_register, real_unregister = atexit.register, atexit.unregister

    def register(
        func: Callable[..., object], /, *args: object, **kwargs: object
    ) -> Callable[..., Any]:
        environment = here()
        if environment is None or imports.importing_shared:
            # Functions that a shared module registers during its import belong to the whole
            # process.
            real_register(func, *args, **kwargs)
        else:
            if environment.at_exit is None:
                environment.at_exit = []
            environment.at_exit.append((func, args, kwargs))
        return func

    def unregister(func: Callable[..., object], /) -> None:
        environment = here()
        if environment is not None and environment.at_exit:
            environment.at_exit = [entry for entry in environment.at_exit if entry[0] != func]
        real_unregister(func)

    def _ncallbacks() -> int:
        environment = here()
        return real_count() if environment is None else len(environment.at_exit or ())

    def _clear() -> None:
        environment = here()
        if environment is None:
            real_clear()
        else:
            environment.at_exit = None

    def _run_exitfuncs() -> None:
        environment = here()
        if environment is None:
            real_run()
        else:
            run_exit_functions(environment)

    real_count, real_clear, real_run = atexit._ncallbacks, atexit._clear, atexit._run_exitfuncs
    for function in (register, unregister, _ncallbacks, _clear, _run_exitfuncs):
        name = function.__name__
        patches.set(atexit, name, like(getattr(atexit, name), function))


def run_exit_functions(environment: RankEnvironment) -> None:
    """Call the functions that the running rank registered with `atexit`, the latest first.

    As in Python, an exception is shown, `SystemExit` too, and the next function is called.
    """
    ended_by = sys.exc_info()[1]
    while environment.at_exit:
        function, args, kwargs = environment.at_exit.pop()
        try:
            function(*args, **kwargs)
        except HardExit:
            raise
        except (Exception, SystemExit) as error:
            print(f"Exception ignored in atexit callback: {function!r}", file=sys.stderr)
            _forget_context(error, ended_by)
            print(format_error(error), end="", file=sys.stderr)


def _forget_context(error: BaseException, outer: BaseException | None) -> None:
    """Leave out the exception that has ended the program: Python handles it no more by now."""
    while error.__context__ is not None and error.__context__ is not outer:
        error = error.__context__
    error.__context__ = None


def _patch_finalize(patches: Patches, imports: ImportSystem) -> None:
    """Have finalizers called at the end of the rank that made them."""
    finalize: Any = weakref.finalize
    if not finalize._registered_with_atexit:
        # Otherwise the first rank that makes a finalizer would register all of the process's.
        atexit.register(finalize._exitfunc)
        finalize._registered_with_atexit = True
    plain: Any = finalize._Info

    class _Info(plain):  # type: ignore[misc]
        __slots__ = ("owner",)

        def __init__(self) -> None:
            maker = str(module_of_caller(2))  # the caller of `finalize`
            compiles = maker.partition(".")[0] in COMPILES
            owner = None if compiles or imports.importing_shared else here()
            self.owner = owner
            if owner is not None and not owner.finalizes:
                owner.finalizes = True
                atexit.register(_run_finalizers, owner)

    def forget() -> None:
        for finalizer, info in list(finalize._registry.items()):
            if type(info) is _Info and info.owner is not None:
                finalize._registry.pop(finalizer, None)

    patches.set(finalize, "_Info", _Info)
    # Finalizers of ranks that have been stopped, or made after the end of their rank.
    patches.call_back(forget)


def _run_finalizers(owner: RankEnvironment) -> None:
    """Call the finalizers of a rank, the latest first, and remove them."""
    finalize: Any = weakref.finalize
    registry = finalize._registry
    own: list[tuple[Any, Any]] = []
    due: list[tuple[Any, Any]] | None = None
    while True:
        if due is None or finalize._dirty:  # a finalizer may make others
            finalize._dirty = False
            own = [
                (finalizer, info)
                for finalizer, info in list(registry.items())
                if getattr(info, "owner", None) is owner
            ]
            due = [entry for entry in own if entry[1].atexit]
            due.sort(key=lambda entry: entry[1].index)
        if not due:
            break
        finalizer, info = due.pop()
        if not info.atexit:
            continue
        try:
            finalizer()
        except Exception as error:
            trace = strip(error.__traceback__)
            sys.excepthook(type(error), error.with_traceback(trace), trace)
    for finalizer, _ in own:
        registry.pop(finalizer, None)


def _patch_hard_exit(patches: Patches) -> None:
    real = os._exit

    def _exit(status: int) -> None:
        # In a process that the rank has forked, the real function is used.
        rank = ranks.current()
        if rank.program is None or not simulates():
            real(status)
        status = operator.index(status)
        if not -(1 << 31) <= status < 1 << 31:
            raise OverflowError("Python int too large to convert to C int")
        status &= 0xFF
        universe = getattr(rank, "universe", None)
        exit_hard = None if universe is None else EXIT_HARD.peek(universe)
        if exit_hard is not None:
            exit_hard(rank, status)
        raise HardExit(status)

    patches.set(os, "_exit", like(real, _exit))


def _patch_input(patches: Patches) -> None:
    real = builtins.input

    def input(prompt: object = "", /) -> str:
        if here() is None or sys.stdin is sys.__stdin__:
            return real(prompt)
        sys.stdout.write(str(prompt))
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            raise EOFError("EOF when reading a line")
        return line.rstrip("\n")

    patches.set(builtins, "input", like(real, input))
