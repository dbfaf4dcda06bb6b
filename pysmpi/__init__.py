"""pysmpi: run unmodified mpi4py programs on a simulated machine.

PYTEST_DONT_REWRITE: without this word, a pytest that starts when pysmpi is loaded, as in
`pysmpi run -m pytest`, warns that it cannot rewrite pysmpi's assertions.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from pysmpi.version import __version__

__all__ = [
    "Options",
    "ProgramError",
    "PysmpiError",
    "Result",
    "UsageError",
    "__version__",
    "animate",
    "execute",
    "run",
    "sample",
    "shared_empty",
    "sweep",
    "touch",
]

if os.environ.get("PYSMPI_INTERPRETED") == "1":
    from pysmpi._interpreted import prefer_source

    prefer_source(sys.meta_path)

if TYPE_CHECKING:
    from pysmpi.analysis.animation import animate
    from pysmpi.api import Options, ProgramError, Result, run
    from pysmpi.errors import PysmpiError, UsageError
    from pysmpi.hints import execute, sample, shared_empty, touch
    from pysmpi.sweeps.sweep import sweep

# Importing the whole simulator takes a while; `pysmpi --version` should not need it.
_HOMES = {
    "Options": "pysmpi.api",
    "ProgramError": "pysmpi.api",
    "PysmpiError": "pysmpi.errors",
    "Result": "pysmpi.api",
    "UsageError": "pysmpi.errors",
    "animate": "pysmpi.analysis.animation",
    "execute": "pysmpi.hints",
    "run": "pysmpi.api",
    "sample": "pysmpi.hints",
    "shared_empty": "pysmpi.hints",
    "sweep": "pysmpi.sweeps.sweep",
    "touch": "pysmpi.hints",
}


if not TYPE_CHECKING:  # type checkers would take any name

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(home), name)
        globals()[name] = value
        return value


def load_ipython_extension(shell: object) -> None:
    """Give a notebook the cell magic `%%pysmpi` (`%load_ext pysmpi`)."""
    from importlib import import_module

    import_module("pysmpi.cli.notebook").load(shell)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
