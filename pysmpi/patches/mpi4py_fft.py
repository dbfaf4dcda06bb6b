"""Plans of FFTW: ranks share its library, and so its planner."""

from __future__ import annotations

from types import ModuleType

from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded

_MODULES = [f"mpi4py_fft.fftw.fftw{kind}_xfftn" for kind in ("", "f", "l")]


@when_loaded(*_MODULES)
def keep_plans(run: PatchedRun, module: ModuleType) -> None:
    """Have `cleanup` free nothing: it would take the plans of the other ranks, too."""

    def cleanup() -> None:
        pass

    run.patches.set(module, "cleanup", cleanup)
