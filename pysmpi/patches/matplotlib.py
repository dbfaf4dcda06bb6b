"""Options, registries and open figures of Matplotlib."""

from __future__ import annotations

from types import ModuleType

from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded


@when_loaded("matplotlib")
def watch_options(run: PatchedRun, module: ModuleType) -> None:
    """Give each rank its own options and tables of colours."""
    run.containers(module, "rcParams", "colormaps._cmaps", "color_sequences._color_sequences")


@when_loaded("matplotlib._pylab_helpers")
def watch_figures(run: PatchedRun, module: ModuleType) -> None:
    """Give each rank its own open figures."""
    run.containers(module, "Gcf.figs")


@when_loaded("matplotlib.units")
def watch_units(run: PatchedRun, module: ModuleType) -> None:
    """Give each rank its own converters of units."""
    run.containers(module, "registry")


@when_loaded("matplotlib.projections")
def watch_projections(run: PatchedRun, module: ModuleType) -> None:
    """Give each rank its own projections."""
    run.containers(module, "projection_registry._all_projection_types")


@when_loaded("matplotlib.scale")
def watch_scale(run: PatchedRun, module: ModuleType) -> None:
    """Give each rank its own scales."""
    run.containers(module, "_scale_mapping")


@when_loaded("matplotlib.style.core")
def watch_styles(run: PatchedRun, module: ModuleType) -> None:
    """Give each rank its own styles."""
    run.containers(module, "library")
