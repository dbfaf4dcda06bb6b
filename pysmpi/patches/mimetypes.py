"""Types of files, for each rank."""

from __future__ import annotations

from typing import Any

from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded


@when_loaded("mimetypes")
def separate_types(run: PatchedRun, module: Any) -> None:
    """Give every rank its own types of files."""

    def tables() -> dict[str, Any]:
        if module._db is None:
            module.init()
        kinds = {
            f"mimetypes.{name}[{place}]": table
            for name in ("types_map", "types_map_inv")
            for place, table in enumerate(getattr(module._db, name))
        }
        return kinds

    run.registries.patch(run.patches, module, ("add_type",), tables)
