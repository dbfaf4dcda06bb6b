"""Variables of the processes that ranks start."""

from __future__ import annotations

from typing import Any

from pysmpi.isolation.kinds import environment
from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded


@when_loaded("_posixsubprocess")
def give_variables(run: PatchedRun, module: Any) -> None:
    """Give children the variables of their rank."""
    environment.patch_children(run.patches, module, run.exchange)
