"""Functions of C that ranks call by `ctypes`."""

from __future__ import annotations

from types import ModuleType

from pysmpi.isolation.kinds import c_state
from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded


@when_loaded("ctypes")
def watch_functions(run: PatchedRun, module: ModuleType) -> None:
    """Notice the functions that change state of the C library."""
    c_state.patch_ctypes(run.patches, module, run.state_of_c)
