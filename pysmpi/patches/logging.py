"""Handlers, filters, levels and names of levels of `logging`, for each rank."""

from __future__ import annotations

from types import ModuleType

from pysmpi.isolation.kinds import logging_state
from pysmpi.isolation.kinds.registries import dictionaries
from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded


@when_loaded("logging")
def separate_configuration(run: PatchedRun, module: ModuleType) -> None:
    """Give every rank its own configuration of loggers."""
    logging_state.patch_logging(run.patches, module, run.exchange, run.imports)


@when_loaded("logging")
def separate_levels(run: PatchedRun, module: ModuleType) -> None:
    """Give every rank its own names of logging's levels."""
    tables = dictionaries(module, "_levelToName", "_nameToLevel")
    run.registries.patch(run.patches, module, ("addLevelName",), tables)
