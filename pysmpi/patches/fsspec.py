"""The file systems that fsspec knows."""

from __future__ import annotations

from types import ModuleType

from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded


@when_loaded("fsspec.registry")
def watch_registry(run: PatchedRun, module: ModuleType) -> None:
    """Give each rank its own file systems."""
    run.containers(module, "_registry")
