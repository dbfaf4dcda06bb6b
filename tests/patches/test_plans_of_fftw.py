"""FFTW's planner is that of all ranks: no rank frees the plans of the others."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

from pysmpi.isolation.loading.libraries import LIBRARIES
from pysmpi.patching.patches import Patches


def test_a_rank_does_not_free_the_plans_of_others() -> None:
    plans = ["of rank 0", "of rank 1"]
    functions = LIBRARIES.find("mpi4py_fft").functions
    assert set(functions) == {f"mpi4py_fft.fftw.fftw{kind}_xfftn" for kind in ("", "f", "l")}
    for name, patches_of_module in functions.items():
        module: Any = ModuleType(name)
        module.cleanup = plans.clear
        run: Any = SimpleNamespace(patches=Patches())
        for patch in patches_of_module:
            patch(run, module)
        assert module.cleanup() is None and len(plans) == 2
        run.patches.undo()
        assert module.cleanup == plans.clear
