"""Modes, default type and random numbers of PyTorch; its process groups are refused."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded
from pysmpi.isolation.state import PolledSetting
from pysmpi.mpi.base.ranks import current
from pysmpi.patching.lookalike import like


@when_loaded("torch")
def watch_settings(run: PatchedRun, module: Any) -> None:
    """Give each rank its own modes, default type and random numbers."""
    settings: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
        "grad mode": (module.is_grad_enabled, module._C._set_grad_enabled),
        "default type": (module.get_default_dtype, module.set_default_dtype),
        "random": (module.get_rng_state, module.set_rng_state),
    }
    for name, (get, put) in settings.items():
        run.exchange.follow(PolledSetting(run.exchange, f"torch {name}", get, put))


@when_loaded("torch.distributed")
def refuse_process_groups(run: PatchedRun, module: ModuleType) -> None:
    """Refuse process groups of PyTorch in jobs of several ranks.

    PyTorch has one default group for a process, which all ranks would share. Other ranks cannot run
    while its C++ code waits for them.
    """
    real = getattr(module, "init_process_group", None)
    if real is None:  # PyTorch was built without it
        return

    def init_process_group(*args: object, **kwargs: object) -> object:
        rank = current()
        if rank.program is not None and rank.world.size > 1:
            raise RuntimeError(
                "torch.distributed.init_process_group: process groups of PyTorch are not "
                "simulated, because ranks are not processes. Exchange tensors with mpi4py: "
                "comm.Allreduce(MPI.IN_PLACE, tensor.numpy())"
            )
        return real(*args, **kwargs)

    replacement = like(real, init_process_group)
    for owner in (module, getattr(module, "distributed_c10d", module)):
        run.patches.set(owner, "init_process_group", replacement)
