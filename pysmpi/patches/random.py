"""The global generator of `random`, for each rank."""

from __future__ import annotations

from types import ModuleType

from pysmpi.isolation.kinds import randomness
from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded


@when_loaded("random")
def separate_generator(run: PatchedRun, module: ModuleType) -> None:
    """Give each rank its own global generator."""
    randomness.patch_random(run.patches, module)
