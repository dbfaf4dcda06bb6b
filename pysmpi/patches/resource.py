"""Limits of resources and processor time, for each rank."""

from __future__ import annotations

from types import ModuleType

from pysmpi.isolation.kinds import settings
from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded
from pysmpi.time import cpu_time


@when_loaded("resource")
def separate_limits(run: PatchedRun, module: ModuleType) -> None:
    """Give every rank its own limits, and the time of its own compute."""
    settings.patch_resource(run.patches, module, run.exchange)
    cpu_time.patch_resource(run.patches, module, run.poll_cost)
