"""Options, registries and open figures of Matplotlib, for each rank."""

from pysmpi.isolation.loading.libraries import containers

containers("matplotlib", "rcParams", "colormaps._cmaps", "color_sequences._color_sequences")
containers("matplotlib._pylab_helpers", "Gcf.figs")
containers("matplotlib.units", "registry")
containers("matplotlib.projections", "projection_registry._all_projection_types")
containers("matplotlib.scale", "_scale_mapping")
containers("matplotlib.style.core", "library")
