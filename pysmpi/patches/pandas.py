"""Options of pandas."""

from __future__ import annotations

from types import ModuleType

from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded


@when_loaded("pandas._config.config")
def watch_config(run: PatchedRun, module: ModuleType) -> None:
    """Give each rank its own options."""
    run.containers(module, "_global_config.*", "_registered_options")
