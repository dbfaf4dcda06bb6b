"""Options of xarray, for each rank."""

from pysmpi.isolation.loading.libraries import containers

containers("xarray.core.options", "OPTIONS")
