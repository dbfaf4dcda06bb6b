"""The formats that IPython displays."""

from __future__ import annotations

from types import ModuleType

from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded


@when_loaded("IPython.core.display")
def watch_display(run: PatchedRun, module: ModuleType) -> None:
    """Give each rank its own formats."""
    run.containers(module, "_display_mimetypes")
