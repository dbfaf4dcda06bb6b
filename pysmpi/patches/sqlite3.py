"""Converters and adapters of `sqlite3`, for each rank."""

from __future__ import annotations

import sys
from types import ModuleType

from pysmpi.isolation.kinds.registries import dictionaries
from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded


@when_loaded("sqlite3.dbapi2")
def separate_converters(run: PatchedRun, module: ModuleType) -> None:
    """Give every rank its own converters and adapters of `sqlite3`."""
    low = sys.modules["_sqlite3"]
    tables = dictionaries(low, "converters", "adapters")
    names = ("register_converter", "register_adapter")
    for holder in (module, sys.modules.get("sqlite3")):
        if holder is not None:
            run.registries.patch(run.patches, holder, names, tables)
