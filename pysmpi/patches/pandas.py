"""Options of pandas, for each rank."""

from pysmpi.isolation.loading.libraries import containers

containers("pandas._config.config", "_global_config.*", "_registered_options")
