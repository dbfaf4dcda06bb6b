"""Event loops: C code keeps the running one for each thread of the operating system.

Threads of ranks share one thread of the operating system. A fiber that runs a loop therefore
removes the loop when it waits, and restores it when it continues. The hooks of asynchronous
generators are treated in the same way, and the running task, which is one of the thread from Python
3.14 on; before, it is one of the loop.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from greenlet import getcurrent

from pysmpi.isolation.threads import thread_locals
from pysmpi.kernel.process import Process
from pysmpi.mpi.base.ranks import Fiber, fiber_of
from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches


def patch_events(patches: Patches, module: ModuleType) -> None:
    """Give every thread of a rank its own running event loop (`asyncio.events`)."""
    real_get, real_set = module._get_running_loop, module._set_running_loop
    swap_task: Any = None
    if sys.version_info >= (3, 14):
        swap_task = getattr(sys.modules.get("_asyncio"), "_swap_current_task", None)

    def carrying(process: Process) -> Callable[[], object]:
        """Runs other ranks without the event loop of this fiber."""
        suspend = process.suspend

        def carry() -> object:
            loop = real_get()
            hooks = sys.get_asyncgen_hooks()
            task = None if swap_task is None or loop is None else swap_task(loop, None)
            real_set(None)
            sys.set_asyncgen_hooks(None, None)
            try:
                return suspend()
            finally:
                process.engine.awake()  # the hooks are state of the rank
                real_set(loop)
                if task is not None:
                    swap_task(loop, task)
                sys.set_asyncgen_hooks(*hooks)

        carry.__dict__["plain"] = suspend
        return carry

    def _set_running_loop(loop: object, /) -> None:
        real_set(loop)
        fiber = fiber_of(getcurrent())
        if not isinstance(fiber, Fiber):
            return
        process = fiber.process
        plain = getattr(process.suspend, "plain", None)
        if loop is None:
            if plain is not None:
                process.suspend = plain
        elif plain is None:
            process.suspend = carrying(process)

    new = like(real_set, _set_running_loop)
    for name in ("asyncio.events", "asyncio", "_asyncio"):
        holder = sys.modules.get(name)
        if holder is not None and hasattr(holder, "_set_running_loop"):
            patches.set(holder, "_set_running_loop", new)
    _patch_policy(patches, module)


def _patch_policy(patches: Patches, module: ModuleType) -> None:
    """Let the policy keep an event loop for each thread of a rank."""
    for name in ("BaseDefaultEventLoopPolicy", "_BaseDefaultEventLoopPolicy"):
        kind = getattr(module, name, None)
        if kind is not None:
            local = type("_Local", (thread_locals.local,), {
                "_loop": None, "_set_called": False,
            })  # fmt: skip
            patches.set(kind, "_Local", local)
    # Made at its first use, with the functions above.
    patches.set(module, "_event_loop_policy", None)
