"""Debuggers, profilers, coverage and crash reports in ranks.

The interpreter has one tracing and one profiling function for its one thread. Those of a rank
belong to the fiber that sets them, like those of a thread in a normal process: after the first one
is set, they are exchanged at switches. New fibers begin with the functions of `threading.settrace`
and `threading.setprofile`, as threads do, so a tool that was started before the run sees all ranks.
"""

from __future__ import annotations

import builtins
import contextlib
import faulthandler
import sys
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import greenlet
from greenlet import getcurrent

from pysmpi.isolation.exchange import Exchange
from pysmpi.isolation.kinds import monitoring
from pysmpi.isolation.kinds.thread_hooks import Hooks
from pysmpi.mpi.base import ranks
from pysmpi.mpi.base.state import StateSlot
from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches
from pysmpi.python.records import record


@record
class _Faults:
    """Whether a rank has switched the handler of crashes on."""

    on: bool = False


Function = Callable[[], Any]
_Patch = Callable[[Patches, ModuleType], Any]

_ENABLED = StateSlot(ranks.Rank, _Faults)

NAMED = 1000  # ranks below this number have a function of their own, the others share two


# Crashes


class Named:
    """`body` below frames with the name of a rank, which `faulthandler` shows in a crash.

    Rank 12345 is below `rank 12000` and `+ 345`: a function for each rank would take memory.
    `outermost` is applied to the functions that ranks call first.
    """

    def __init__(
        self, body: Function, outermost: Callable[[Function], Function] = lambda function: function
    ) -> None:
        self._outermost = outermost
        self._bodies = (body,)
        self._rests: dict[int, Function] = {}
        self._thousands: dict[int, Function] = {}

    def of(self, pid: int) -> Function:
        """The function of a rank."""
        if pid < NAMED:
            return self._outermost(_named(_last_frame.__code__, f"rank {pid}", self._bodies))
        rest = pid % NAMED
        if rest not in self._rests:
            self._rests[rest] = _named(_last_frame.__code__, f"+ {rest}", self._bodies)
        first = pid - rest
        result = self._thousands.get(first)
        if result is None:
            function = _named(_first_frame.__code__, f"rank {first}", (self._rests,))
            result = self._thousands[first] = self._outermost(function)
        return result


def _named(code: CodeType, name: str, defaults: tuple[object, ...]) -> Function:
    return FunctionType(code.replace(co_name=name, co_qualname=name), _GLOBALS, argdefs=defaults)


def _first_frame(rests: dict[int, Function]) -> object:
    running: Any = getcurrent()
    return rests[running.rank.pid % NAMED]()


def _last_frame(body: Function) -> object:
    return body()


_GLOBALS: dict[str, Any] = {"NAMED": NAMED, "getcurrent": getcurrent}


def patch_faulthandler(patches: Patches, module: ModuleType) -> None:
    """Keep a switch of the handler for each rank; a crash concerns all ranks."""
    real_enable, real_disable, real_enabled = module.enable, module.disable, module.is_enabled

    def enable(file: object = None, all_threads: bool = True) -> None:
        real_enable(sys.stderr if file is None else file, all_threads)
        rank = ranks.current()
        if rank.program is not None:
            _ENABLED.of(rank).on = True

    def disable() -> bool:
        rank = ranks.current()
        if rank.program is None:
            return bool(real_disable())
        faults = _ENABLED.of(rank)
        before, faults.on = faults.on, False
        return before

    def is_enabled() -> bool:
        rank = ranks.current()
        return bool(real_enabled() if rank.program is None else _ENABLED.of(rank).on)

    patches.set(module, "enable", like(real_enable, enable))
    patches.set(module, "disable", like(real_disable, disable))
    patches.set(module, "is_enabled", like(real_enabled, is_enabled))


# Debuggers


def patch_pdb(patches: Patches, module: ModuleType) -> None:
    """Give the debugger of any rank the terminal, with the rank in its prompt."""
    kind = module.Pdb
    real_init = kind.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        real_init(self, *args, **kwargs)
        rank = ranks.current()
        if rank.program is not None:
            if self.prompt == "(Pdb) ":
                self.prompt = f"(Pdb, rank {rank.index}) "
            # A step over an MPI call is one step, as where MPI is compiled.
            self.skip = {*(self.skip or ()), "pysmpi.*"}

    patches.set(kind, "__init__", like(real_init, __init__))
    cmd: Any = module.cmd
    real_loop = cmd.Cmd.cmdloop
    prompting: dict[greenlet.greenlet, list[Any]] = {}  # the open prompts of each thread

    def cmdloop(self: Any, intro: Any = None) -> None:
        thread = getcurrent()
        loops = prompting.setdefault(thread, [])
        loops.append(self)
        try:
            real_loop(self, intro)
        finally:
            loops.pop()
            if not loops:
                prompting.pop(thread, None)

    patches.set(cmd.Cmd, "cmdloop", like(real_loop, cmdloop))

    def input(prompt: object = "", /) -> str:
        loops = prompting.get(getcurrent())
        if ranks.current().program is None or not loops or not isinstance(loops[-1], kind):
            return builtins.input(prompt)
        own = sys.stdin
        sys.stdin = sys.__stdin__
        try:
            return _terminal(str(prompt))
        finally:
            sys.stdin = own

    patches.set(cmd, "input", input)


def _terminal(prompt: str) -> str:
    """Read from the standard input of the process; it is shared, so there is no read-ahead."""
    stream: Any = sys.__stdin__
    if stream is None:
        raise EOFError
    sys.stdout.write(prompt)
    sys.stdout.flush()
    line: str = stream.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")


# Tracing and profiling functions

# Called in each new fiber, in the place of what `threading` does; of debuggers.
_beginners: list[Callable[[], object]] = []


def begin_fibers_with(patches: Patches, begin: Callable[[], object]) -> None:
    """Have a function called in each new fiber until the patches are undone."""
    _beginners.append(begin)
    patches.call_back(lambda: _beginners.remove(begin))


def begin_fiber() -> None:
    """Set the functions in a new fiber that `threading` would set in a new thread."""
    if _beginners:
        for begin in _beginners:
            begin()
        return
    state: Any = threading
    if state._trace_hook is not None:
        sys.settrace(state._trace_hook)
    if state._profile_hook is not None:
        sys.setprofile(state._profile_hook)


def install(patches: Patches, exchange: Exchange, hooks: Hooks) -> dict[str, _Patch]:
    """Let tools work in ranks until the patches are undone.

    `exchange` gives each rank its own functions for the threads that it starts. Returns the
    functions to call with loaded modules.
    """
    for name in ("_trace_hook", "_profile_hook"):
        exchange.watch(vars(threading), name)
    monitored = monitoring.install(patches, hooks.switches)
    state: Any = threading
    if sys.gettrace() or sys.getprofile() or state._trace_hook or state._profile_hook:
        hooks.follow()
    else:
        for module in (sys, threading):
            # Compiled tools set their own hook directly, and those of threads with these functions.
            for name in ("settrace", "setprofile"):
                _follow_calls(patches, module, name, hooks)

    def patch_profile(patches: Patches, module: ModuleType) -> None:
        kind = module.Profile
        real = kind.enable

        def enable(self: object, *args: object, **kwargs: object) -> None:
            hooks.follow()
            real(self, *args, **kwargs)

        patches.set(kind, "enable", like(real, enable))

    def patch_profiler(patches: Patches, module: ModuleType) -> None:
        # `python -m cProfile` derives a class from this one, which cannot be changed.
        class Profiler(module.Profiler):  # type: ignore[name-defined, misc]
            __doc__ = module.Profiler.__doc__
            __module__ = module.Profiler.__module__

            def enable(self, *args: object, **kwargs: object) -> None:
                hooks.follow()
                super().enable(*args, **kwargs)

        patches.set(module, "Profiler", Profiler)

    loaded: dict[str, _Patch] = {
        "faulthandler": patch_faulthandler,
        "pdb": patch_pdb,
    }
    if not monitored:
        loaded |= {"_lsprof": patch_profiler, "cProfile": patch_profile}
    return loaded


def _follow_calls(patches: Patches, module: object, name: str, hooks: Hooks) -> None:
    real = getattr(module, name)

    def set_hook(function: object, /) -> None:
        if function is not None:
            hooks.follow()
        real(function)

    patches.set(module, name, like(real, set_hook))


def report_crashes() -> None:
    """Make a crash of the process show the lines of its program."""
    with contextlib.suppress(Exception):
        if not faulthandler.is_enabled():
            faulthandler.enable()


@contextlib.contextmanager
def outside_of_ranks() -> Iterator[None]:
    """Inside it, the running code belongs to no rank."""
    fiber: Any = getcurrent()
    rank = getattr(fiber, "rank", None)
    if rank is None:
        yield
        return
    fiber.rank = ranks.outside
    try:
        yield
    finally:
        fiber.rank = rank
