"""Dialects of `csv`, and its largest size of a field, for each rank."""

from __future__ import annotations

import sys
from typing import Any

from pysmpi.isolation.kinds.registries import dictionaries
from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded
from pysmpi.isolation.state import Accessed
from pysmpi.patching.lookalike import like


@when_loaded("csv")
def separate_dialects(run: PatchedRun, module: Any) -> None:
    """Give every rank its own dialects, and its own largest size of a field."""
    low = sys.modules["_csv"]
    tables = dictionaries(low, "_dialects")
    run.registries.patch(run.patches, module, ("register_dialect", "unregister_dialect"), tables)
    real = module.field_size_limit
    setting = Accessed(run.exchange, "size of csv fields", real, real)

    def field_size_limit(*args: int) -> object:
        return setting.change(real, *args) if args else real()

    run.patches.set(module, "field_size_limit", like(real, field_size_limit))
