"""Prefixes of XML namespaces, for each rank."""

from __future__ import annotations

from types import ModuleType

from pysmpi.isolation.kinds.registries import dictionaries
from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded


@when_loaded("xml.etree.ElementTree")
def separate_namespaces(run: PatchedRun, module: ModuleType) -> None:
    """Give every rank its own prefixes of XML namespaces."""
    tables = dictionaries(module, "_namespace_map")
    run.registries.patch(run.patches, module, ("register_namespace",), tables)
