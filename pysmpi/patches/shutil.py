"""Formats of archives, for each rank."""

from __future__ import annotations

from types import ModuleType

from pysmpi.isolation.kinds.registries import dictionaries
from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded


@when_loaded("shutil")
def separate_formats(run: PatchedRun, module: ModuleType) -> None:
    """Give every rank its own formats of archives."""
    tables = dictionaries(module, "_ARCHIVE_FORMATS", "_UNPACK_FORMATS")
    names = [f"{do}register_{kind}_format" for do in ("", "un") for kind in ("archive", "unpack")]
    run.registries.patch(run.patches, module, names, tables)
