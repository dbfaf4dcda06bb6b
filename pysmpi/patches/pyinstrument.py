"""The profiler pyinstrument, whose function in C is a hook of its thread."""

from __future__ import annotations

from types import ModuleType

from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded


@when_loaded("pyinstrument.low_level.stat_profile")
def follow_hooks(run: PatchedRun, module: ModuleType) -> None:
    """Exchange the functions for profiles at switches."""
    run.hooks.follow()
