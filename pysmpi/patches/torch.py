"""Modes, default type and random numbers of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded
from pysmpi.isolation.state import PolledSetting


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
