"""Directories of translations, for each rank."""

from __future__ import annotations

from types import ModuleType

from pysmpi.isolation.kinds.registries import dictionaries
from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded


@when_loaded("gettext")
def separate_domains(run: PatchedRun, module: ModuleType) -> None:
    """Give every rank its own directories of translations."""
    run.registries.patch(
        run.patches, module, ("bindtextdomain",), dictionaries(module, "_localedirs")
    )
