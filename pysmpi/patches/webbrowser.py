"""Registered browsers, for each rank."""

from __future__ import annotations

from typing import Any

from pysmpi.isolation.kinds.registries import dictionaries
from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded


@when_loaded("webbrowser")
def separate_browsers(run: PatchedRun, module: Any) -> None:
    """Give every rank its own browsers."""

    def tables() -> dict[str, Any]:
        if module._tryorder is None:
            module.register_standard_browsers()
        return dictionaries(module, "_browsers", "_tryorder")()

    run.registries.patch(run.patches, module, ("register",), tables)
