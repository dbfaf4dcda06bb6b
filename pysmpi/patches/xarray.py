"""Options of xarray."""

from __future__ import annotations

from types import ModuleType

from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded


@when_loaded("xarray.core.options")
def watch_options(run: PatchedRun, module: ModuleType) -> None:
    """Give each rank its own options."""
    run.containers(module, "OPTIONS")
