"""pydevd, the debugger of debugpy, PyCharm and VS Code, in ranks.

A stopped thread waits for commands of the debugger's own threads. This wait belongs to no rank.
Meanwhile the other ranks are shown as threads; expressions of the user are evaluated in the rank
whose frame is selected.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from greenlet import getcurrent

from pysmpi.isolation.kinds.tools import begin_fibers_with, outside_of_ranks
from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded
from pysmpi.mpi.base import ranks
from pysmpi.patching.lookalike import like
from pysmpi.python.frames import suspended_stack


@when_loaded("_pydevd_bundle.pydevd_constants")
def stop_in_ranks(run: PatchedRun, module: Any) -> None:
    """Let the debugger stop in ranks, if it was started before the run."""
    patches = run.patches
    debugger = module.GlobalDebuggerHolder.global_dbg
    variables: Any = sys.modules.get("_pydevd_bundle.pydevd_vars")
    tracing: Any = sys.modules.get("pydevd_tracing")
    custom: Any = sys.modules.get("_pydevd_bundle.pydevd_custom_frames")
    if debugger is None or variables is None or tracing is None or custom is None:
        return
    run.hooks.follow()

    def begin_fiber() -> None:
        with outside_of_ranks():
            debugger.enable_tracing()

    begin_fibers_with(patches, begin_fiber)
    # It would start its thread for evaluations at a stop; with `sys.monitoring` none begins there.
    with debugger.timeout_tracker.call_on_timeout(60.0, lambda: None):
        pass
    kind = type(debugger)
    real = kind.do_wait_suspend
    space = real.__globals__
    standing: dict[int, tuple[Any, Any]] = {}  # by greenlet: the rank, the thread
    owners: dict[int, Any] = {}  # of the frames of the other ranks
    selected: list[Any] = []  # the rank of the frame in which an expression is evaluated

    def do_wait_suspend(self: object, thread: Any, *args: object, **kwargs: object) -> Any:
        fiber: Any = getcurrent()
        rank = getattr(fiber, "rank", None)
        if rank is None or rank.program is None:
            return real(self, thread, *args, **kwargs)
        standing[id(fiber)] = rank, thread
        fiber.rank = ranks.outside
        named = threading.main_thread()
        name, named.name = named.name, f"rank {rank.pid}"
        shown = []
        try:
            for other in rank.universe.ranks:
                if other is rank or other.fiber is None:
                    continue
                stack = suspended_stack(other.fiber)
                if stack:
                    name_of = f"rank {other.pid}"
                    shown.append(custom.add_custom_frame(stack[0], name_of, thread.ident))
                owners.update((id(frame), other) for frame in stack)
            return real(self, thread, *args, **kwargs)
        finally:
            for one in shown:
                custom.remove_custom_frame(one)
            owners.clear()
            named.name = name
            fiber.rank = rank
            del standing[id(fiber)]

    def evaluate_expression(dbg: object, frame: object, *args: object, **kwargs: object) -> Any:
        selected.append(owners.get(id(frame)))
        try:
            return real_expression(dbg, frame, *args, **kwargs)
        finally:
            selected.pop()

    def evaluating(function: Callable[..., object]) -> Callable[..., object]:
        def evaluate(*args: object) -> object:
            fiber: Any = getcurrent()
            rank, _ = standing.get(id(fiber), (None, None))
            if rank is None:
                return function(*args)
            fiber.rank = rank if not selected or selected[-1] is None else selected[-1]
            try:
                return function(*args)
            finally:
                fiber.rank = ranks.outside

        return evaluate

    current_thread = space["threadingCurrentThread"]

    def standing_thread() -> object:
        found = standing.get(id(getcurrent()))
        return current_thread() if found is None else found[1]

    real_to_threads = tracing.set_trace_to_threads

    def set_trace_to_threads(*args: object, **kwargs: object) -> Any:
        with outside_of_ranks():
            return real_to_threads(*args, **kwargs)

    patches.set(tracing, "set_trace_to_threads", like(real_to_threads, set_trace_to_threads))
    patches.set(kind, "do_wait_suspend", like(real, do_wait_suspend))
    real_expression = variables.evaluate_expression
    patches.set(variables, "evaluate_expression", like(real_expression, evaluate_expression))
    patches.entry(space, "threadingCurrentThread", standing_thread)
    patches.entry(vars(variables), "eval", evaluating(eval))
    if hasattr(variables, "Exec"):
        patches.entry(vars(variables), "Exec", evaluating(variables.Exec))
