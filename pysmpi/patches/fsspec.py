"""The file systems that fsspec knows, for each rank."""

from pysmpi.isolation.loading.libraries import containers

containers("fsspec.registry", "_registry")
