"""Event loops that wait in C for the thread of all ranks: they are refused.

A program that does not depend on them, as with an optional import, continues without them.
"""

from __future__ import annotations

import importlib
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.isolation.kinds.rank_environment import here
from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches
from pysmpi.python.frames import import_site

_INSTEAD = {
    "gevent": "use threads or asyncio, which wait in simulated time",
    "uvloop": "use the event loop of asyncio itself, which waits in simulated time",
}


class ImportsLoop(UsageError, ImportError):
    """A program imports an event loop that would block all ranks."""


def install(patches: Patches) -> None:
    """Refuse them in ranks until the patches are undone."""
    machinery: Any = importlib.import_module("_imp")
    real = machinery.create_dynamic

    def create_dynamic(spec: Any, file: object = None, /) -> object:
        package = spec.name.partition(".")[0]
        if package in _INSTEAD and here() is not None:
            site = import_site(package)
            where = "" if site is None else f" at {site}"
            raise ImportsLoop(
                f"package {package}, imported{where}, cannot be simulated: its event loop waits "
                f"in C for the one thread in which all ranks run; {_INSTEAD[package]}"
            )
        return real(spec) if file is None else real(spec, file)

    patches.set(machinery, "create_dynamic", like(real, create_dynamic))
