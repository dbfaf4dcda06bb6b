"""Character sets of mails, for each rank."""

from __future__ import annotations

from types import ModuleType

from pysmpi.isolation.kinds.registries import dictionaries
from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded


@when_loaded("email.charset")
def separate_charsets(run: PatchedRun, module: ModuleType) -> None:
    """Give every rank its own character sets of mails."""
    tables = dictionaries(module, "ALIASES", "CHARSETS", "CODEC_MAP")
    run.registries.patch(run.patches, module, ("add_alias", "add_charset", "add_codec"), tables)
