"""The configuration of scikit-learn, for each rank."""

from pysmpi.isolation.loading.libraries import containers

containers("sklearn._config", "_global_config")
