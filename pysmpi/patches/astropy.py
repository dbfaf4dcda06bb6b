"""The units that are enabled in Astropy."""

from __future__ import annotations

from types import ModuleType

from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded


@when_loaded("astropy.units.core")
def watch_units(run: PatchedRun, module: ModuleType) -> None:
    """Give each rank its own enabled units."""
    run.containers(module, "_unit_registries+")
