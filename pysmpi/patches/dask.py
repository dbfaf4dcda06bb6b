"""The configuration of Dask."""

from __future__ import annotations

from types import ModuleType

from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded


@when_loaded("dask.config")
def watch_config(run: PatchedRun, module: ModuleType) -> None:
    """Give each rank its own configuration."""
    run.containers(module, "config.*")
