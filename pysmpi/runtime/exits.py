"""The end of a rank: `atexit`, `os._exit`; and its standard input, `input`."""

from __future__ import annotations

import atexit
import builtins
import operator
import os
import sys
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any

from pysmpi.mpi import rank as ranks
from pysmpi.runtime.patches import Patches
from pysmpi.runtime.rules import Rules
from pysmpi.runtime.surroundings import Surroundings, here
from pysmpi.runtime.view import ModuleView


class HardExit(SystemExit):
    """`os._exit` in a rank that no simulation runs: ends it without its exit functions."""


def install(patches: Patches, view: ModuleView, rules: Rules) -> None:
    """Give every rank its own end until the patches are undone."""
    _patch_atexit(patches, view, rules)
    _patch_hard_exit(patches)
    _patch_input(patches)


def _is_library(frame: FrameType, view: ModuleView, rules: Rules) -> bool:
    """Whether a module runs in `frame` that is installed, and shared by all ranks."""
    name = frame.f_globals.get("__name__")
    return name in view.shared and rules.installed(frame.f_code.co_filename)


def _patch_atexit(patches: Patches, view: ModuleView, rules: Rules) -> None:
    real_register, real_unregister = atexit.register, atexit.unregister

    def register(func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        surroundings = here()
        if surroundings is None or _is_library(sys._getframe(1), view, rules):
            # What a shared library registers concerns the whole process.
            real_register(func, *args, **kwargs)
        else:
            if surroundings.at_exit is None:
                surroundings.at_exit = []
            surroundings.at_exit.append((func, args, kwargs))
        return func

    def unregister(func: Callable[..., Any], /) -> None:
        surroundings = here()
        if surroundings is not None and surroundings.at_exit:
            surroundings.at_exit = [entry for entry in surroundings.at_exit if entry[0] != func]
        real_unregister(func)

    register.__doc__ = real_register.__doc__
    unregister.__doc__ = real_unregister.__doc__
    patches.set(atexit, "register", register)
    patches.set(atexit, "unregister", unregister)


def run_exit_functions(surroundings: Surroundings) -> None:
    """Call what the rank that is running registered with `atexit`, the latest first.

    As Python does, goes on after an exception, which is shown; `SystemExit` is passed on at the
    end.
    """
    leave: SystemExit | None = None
    while surroundings.at_exit:
        function, args, kwargs = surroundings.at_exit.pop()
        try:
            function(*args, **kwargs)
        except SystemExit as error:
            leave = error
        except Exception:
            print(f"Exception ignored in atexit callback: {function!r}", file=sys.stderr)
            traceback.print_exc()
    if leave is not None:
        raise leave


def _patch_hard_exit(patches: Patches) -> None:
    real = os._exit
    getpid = os.getpid  # the real one: installed before ranks get numbers of their own
    simulator = getpid()

    def _exit(status: int) -> None:
        # In a process that the rank has forked, the real thing is meant.
        rank = ranks.current()
        if rank.program is None or getpid() != simulator:
            real(status)
        status = operator.index(status)
        universe = getattr(rank, "universe", None)
        simulation = None if universe is None else universe.options.get("simulation")
        if simulation is not None:
            simulation.exit_hard(rank, status)
        raise HardExit(status)

    _exit.__doc__ = real.__doc__
    patches.set(os, "_exit", _exit)


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

    input.__doc__ = real.__doc__
    patches.set(builtins, "input", input)
