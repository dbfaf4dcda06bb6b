"""pysmpi: run unmodified mpi4py programs on a simulated machine."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "Options",
    "ProgramError",
    "PysmpiError",
    "Result",
    "UsageError",
    "run",
    "sample",
    "shared_empty",
    "touch",
]

if os.environ.get("PYSMPI_INTERPRETED") == "1":
    from pysmpi._interpreted import prefer_source

    prefer_source(sys.meta_path)

if TYPE_CHECKING:
    from pysmpi.api import Options, ProgramError, Result, run
    from pysmpi.arrays import shared_empty
    from pysmpi.errors import PysmpiError, UsageError
    from pysmpi.sampling import sample
    from pysmpi.touching import touch

# Importing the whole simulator takes a while; `pysmpi --version` should not need it.
_HOMES = {
    "Options": "pysmpi.api",
    "ProgramError": "pysmpi.api",
    "PysmpiError": "pysmpi.errors",
    "Result": "pysmpi.api",
    "UsageError": "pysmpi.errors",
    "run": "pysmpi.api",
    "sample": "pysmpi.sampling",
    "shared_empty": "pysmpi.arrays",
    "touch": "pysmpi.touching",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
