"""The host name of a rank in `platform`."""

from __future__ import annotations

from types import ModuleType

from pysmpi.isolation.kinds import environment
from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded


@when_loaded("platform")
def name_host(run: PatchedRun, module: ModuleType) -> None:
    """Give each rank the name of its host."""
    environment.patch_platform(run.patches, module)
