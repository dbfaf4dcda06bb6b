"""The treatment of errors in special functions of SciPy."""

from __future__ import annotations

import sys
from typing import Any

from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded
from pysmpi.isolation.state import Accessed


@when_loaded("scipy.special")
def patch_errors(run: PatchedRun, module: Any) -> None:
    """Give each rank its own treatment of errors (`scipy.special.seterr`)."""
    real, get = module.seterr, module.geterr
    setting = Accessed(
        run.exchange, "errors of special functions", get, lambda value: real(**value)
    )
    for holder in (module, sys.modules.get("scipy.special._ufuncs")):
        if holder is not None and getattr(holder, "seterr", None) is not None:
            setting.replace(run.patches, holder, "seterr")
