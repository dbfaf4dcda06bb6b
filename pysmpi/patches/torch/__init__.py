"""Modes, default type and random numbers of PyTorch, and its process groups over MPI."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pysmpi.isolation.kinds.environment import add_launcher
from pysmpi.isolation.kinds.rank_environment import RankEnvironment
from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded
from pysmpi.isolation.state import PolledSetting
from pysmpi.patches.torch import groups, native

PORT = "29500"  # the one that torchrun takes


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


def torchrun_variables(environment: RankEnvironment) -> dict[str, str]:
    """The variables by which torchrun tells a process its place."""
    return {
        "RANK": str(environment.rank),
        "WORLD_SIZE": str(environment.invocation.size),
        "LOCAL_RANK": str(environment.local_rank),
        "LOCAL_WORLD_SIZE": str(environment.local_size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": PORT,
    }


@when_loaded("torch")
def set_variables(run: PatchedRun, module: ModuleType) -> None:
    """Set the variables of torchrun, which programs read after they have imported PyTorch."""
    add_launcher(run.patches, torchrun_variables)


@when_loaded("torch")
def simulate_process_groups(run: PatchedRun, module: ModuleType) -> None:
    """Let process groups use simulated MPI, and C++ code wait for other ranks in it."""
    registry = sys.modules.get("torch.distributed.distributed_c10d")
    if hasattr(registry, "_world"):  # PyTorch was built with process groups
        groups.install(run, registry)
        native.carry_backward(run, sys.modules["torch.autograd"])
        native.carry_functions(run, sys.modules["torch.autograd"])
        native.carry_reducers(run, sys.modules["torch.distributed"])
        native.carry_operators(run, module)
