"""The formats that IPython displays, for each rank."""

from pysmpi.isolation.loading.libraries import containers

containers("IPython.core.display", "_display_mimetypes")
