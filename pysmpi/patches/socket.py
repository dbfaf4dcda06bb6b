"""Sockets: waits of ranks, and a default timeout for each rank."""

from __future__ import annotations

from types import ModuleType

from pysmpi.isolation.kinds import settings
from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded
from pysmpi.waiting.outside import sockets


@when_loaded("socket")
def wait_for_sockets(run: PatchedRun, module: ModuleType) -> None:
    """Let other ranks continue while a rank waits for a socket."""
    sockets.patch_socket(run.patches, module)
    settings.patch_socket(run.patches, module, run.exchange)
