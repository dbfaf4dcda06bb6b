"""The present time of `datetime`, which is simulated."""

from __future__ import annotations

from types import ModuleType

from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded
from pysmpi.time import clock


@when_loaded("datetime")
def simulate_now(run: PatchedRun, module: ModuleType) -> None:
    """Let `datetime.now` and its like read the clock of the rank."""
    clock.patch_datetime(run.patches, module)
