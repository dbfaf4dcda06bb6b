"""The configuration of scikit-learn."""

from __future__ import annotations

from types import ModuleType

from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded


@when_loaded("sklearn._config")
def watch_config(run: PatchedRun, module: ModuleType) -> None:
    """Give each rank its own configuration."""
    run.containers(module, "_global_config")
