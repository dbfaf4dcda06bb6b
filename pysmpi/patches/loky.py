"""Process pools of loky."""

from __future__ import annotations

from types import ModuleType

from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded


@when_loaded("loky.process_executor")
def patch_pools(run: PatchedRun, module: ModuleType) -> None:
    """End the pools of a rank with its threads."""
    if run.threads is not None:
        run.threads.own_executors(run.patches, module.ProcessPoolExecutor)
