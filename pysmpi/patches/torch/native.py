"""Functions of PyTorch in C++ that call process groups or hooks of the program.

They are called in carriers, so that they can wait for other ranks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from greenlet import getcurrent

from pysmpi.isolation.loading.libraries import PatchedRun
from pysmpi.mpi.base.ranks import Fiber, current
from pysmpi.patches.torch.groups import GROUPS
from pysmpi.patching.lookalike import like
from pysmpi.time.cpu_clock import CpuClock
from pysmpi.waiting.outside.carriers import carried

_FUNCTIONS = ("_verify_params_across_processes", "_broadcast_coalesced")
_NAMESPACES = ("_c10d_functional", "_c10d_functional_autograd", "c10d_functional", "_dtensor")
_METHODS = (
    "prepare_for_forward",
    "prepare_for_backward",
    "_rebuild_buckets",
    "_push_all_rebuilt_params",
    "_run_comm_hook",
)


def _carrying(run: PatchedRun, real: Callable[..., object]) -> Callable[..., object]:
    """A function that calls `real` in a carrier if the rank has process groups."""
    stopwatch = run.imports.stopwatch
    clock = stopwatch if isinstance(stopwatch, CpuClock) else None
    torch: Any = sys.modules["torch"]
    C = torch._C

    def call(*args: object, **kwargs: object) -> object:
        groups = GROUPS.peek(current())
        if (
            groups is None
            or groups.default_pg is None
            or not isinstance(getcurrent(), Fiber)
            or C._len_torch_dispatch_stack()
            or C._len_torch_function_stack()
            or C._are_functorch_transforms_active()
        ):
            return real(*args, **kwargs)
        # The state that PyTorch has for each thread.
        gradients, autocast = torch.is_grad_enabled(), torch.get_autocast_dtype("cpu")
        keys = C._dispatch_tls_local_include_set(), C._dispatch_tls_local_exclude_set()

        def there() -> object:
            with C._ForceDispatchKeyGuard(*keys):
                C._set_grad_enabled(gradients)
                torch.set_autocast_dtype("cpu", autocast)
                return real(*args, **kwargs)

        return carried(clock, there)

    return like(real, call)


def carry_functions(run: PatchedRun, module: Any) -> None:
    """Call differentiable functions of programs where they can wait."""
    kind = module.Function
    real = vars(kind)["apply"].__func__
    run.patches.set(kind, "apply", classmethod(_carrying(run, real)))


def carry_backward(run: PatchedRun, module: Any) -> None:
    """Call hooks of gradients where they can wait."""
    real = getattr(module, "_engine_run_backward", None)
    if real is None:
        return
    new = _carrying(run, real)
    for owner in (module, sys.modules.get("torch.autograd.graph")):
        if getattr(owner, "_engine_run_backward", None) is real:
            run.patches.set(owner, "_engine_run_backward", new)


def carry_reducers(run: PatchedRun, module: Any) -> None:
    """Call the parts of `DistributedDataParallel` in C++ where they can wait."""
    for name in _FUNCTIONS:
        real = getattr(module, name, None)
        if real is None:
            continue
        new = _carrying(run, real)
        for holder, other in list(sys.modules.items()):
            if holder.startswith("torch.") and getattr(other, name, None) is real:
                run.patches.set(other, name, new)
    reducer = getattr(module, "Reducer", None)
    for name in _METHODS:
        if hasattr(reducer, name):
            run.patches.set(reducer, name, _carrying(run, getattr(reducer, name)))


def carry_operators(run: PatchedRun, torch: Any) -> None:
    """Call the collectives that are operators of PyTorch where they can wait."""
    for full_name in torch._C._dispatch_get_all_op_names():
        namespace, _, name = full_name.partition("::")
        if namespace not in _NAMESPACES:
            continue
        name, _, overload = name.partition(".")
        packet = getattr(getattr(torch.ops, namespace), name)
        for operator in (packet, getattr(packet, overload or "default")):
            if not hasattr(operator._op, "__wrapped__"):
                run.patches.set(operator, "_op", _carrying(run, operator._op))
