"""The units that are enabled in Astropy, for each rank."""

from pysmpi.isolation.loading.libraries import containers

containers("astropy.units.core", "_unit_registries+")
