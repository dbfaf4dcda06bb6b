"""Pools of threads and processes of `concurrent.futures`."""

from __future__ import annotations

from types import ModuleType

from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded
from pysmpi.isolation.threads import fibers


@when_loaded("concurrent.futures._base")
def poll_futures(run: PatchedRun, module: ModuleType) -> None:
    """Let time pass for a program that polls a future."""
    fibers.patch_futures(run.patches, module)


@when_loaded("concurrent.futures.thread")
def end_pools(run: PatchedRun, module: ModuleType) -> None:
    """End pools of threads with their rank."""
    if run.threads is not None:
        fibers.patch_executor(run.patches, module, run.threads)


@when_loaded("concurrent.futures.process")
def end_process_pools(run: PatchedRun, module: ModuleType) -> None:
    """End pools of processes with the threads of their rank."""
    if run.threads is not None:
        fibers.patch_process_executor(run.patches, module, run.threads)
