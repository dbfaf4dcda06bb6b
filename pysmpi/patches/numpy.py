"""Random numbers, print options and error handling of numpy."""

from __future__ import annotations

from typing import Any

import numpy

from pysmpi.isolation.kinds import randomness
from pysmpi.isolation.loading.libraries import PatchedRun, containers, when_loaded
from pysmpi.isolation.state import PolledSetting


@when_loaded("numpy.random")
def patch_random(run: PatchedRun, module: Any) -> None:
    """Give each rank its own global generator."""
    randomness.patch_numpy(run.patches, module)


# Before numpy 2.0, and for print options before 2.2, numpy keeps its settings for the process.
_CORE = "numpy.core" if numpy.__version__.startswith("1.") else "numpy._core"


containers(f"{_CORE}.arrayprint", "_format_options")


@when_loaded(f"{_CORE}.umath")
def watch_errors(run: PatchedRun, module: Any) -> None:
    """Give each rank its own treatment of floating-point errors (`numpy.seterr`)."""
    if hasattr(module, "geterrobj"):
        get, put = module.geterrobj, module.seterrobj
        # A copy: numpy changes the list that it gives.
        run.exchange.follow(PolledSetting(run.exchange, "numpy errors", lambda: list(get()), put))
