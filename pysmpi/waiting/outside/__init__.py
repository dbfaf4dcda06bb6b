"""Waits outside MPI: descriptors, child processes, sockets, event loops, semaphores, file locks."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from pysmpi.isolation.exchange import Exchange
from pysmpi.isolation.kinds import descriptors as standard
from pysmpi.patching.patches import Patches
from pysmpi.patching.replacing import Replacements
from pysmpi.time import alarms
from pysmpi.time.stopwatch import Stopwatch
from pysmpi.waiting.outside import (
    carriers,  # noqa: F401  # it needs the functions for threads before they are replaced
    children,
    descriptors,
    event_loops,
    file_locks,
    foreign_loops,
    polling,
    secure_sockets,
    semaphores,
    signals,
    streams,
)


def install(
    patches: Patches,
    exchange: Exchange,
    stopwatch: Stopwatch | None,
    started: children.Children,
) -> dict[str, Callable[[Patches, ModuleType], object]]:
    """Let other ranks continue during waits outside MPI, until the patches are undone.

    Returns the functions to call with loaded modules.
    """
    replacements = Replacements(patches)
    own = standard.install(patches, exchange)
    descriptors.install(patches, replacements, own)
    polling.install(patches, replacements)
    children.install(patches, replacements, started)
    signals.install(replacements)
    alarms.install(replacements)
    streams.install(patches, stopwatch)
    foreign_loops.install(patches)
    replacements.everywhere()

    def inside(patches: Patches, module: ModuleType) -> None:
        replacements.inside(module)

    def patch_fcntl(patches: Patches, module: ModuleType) -> None:
        file_locks.patch_locks(patches, module, replacements)
        if own is not None:
            standard.patch_fcntl(patches, module, own)

    return {
        "_multiprocessing": semaphores.patch_semaphores,
        "fcntl": patch_fcntl,
        "asyncio.events": event_loops.patch_events,
        "selectors": lambda patches, module: polling.patch_selectors(patches, module, replacements),
        "subprocess": lambda patches, module: children.patch_subprocess(
            started, module, replacements
        ),
        "multiprocessing.process": semaphores.patch_processes,
        "multiprocessing.connection": inside,
        "multiprocessing.popen_fork": inside,
        "ssl": secure_sockets.patch_ssl,
    }
