"""The configuration of Dask, for each rank."""

from pysmpi.isolation.loading.libraries import containers

containers("dask.config", "config.*")
