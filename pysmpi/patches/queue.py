"""Queues between threads of a rank."""

from __future__ import annotations

from types import ModuleType

from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded
from pysmpi.isolation.threads import fibers


@when_loaded("queue")
def wait_for_items(run: PatchedRun, module: ModuleType) -> None:
    """Let queues wait in simulated time."""
    fibers.patch_queue(run.patches, module)
