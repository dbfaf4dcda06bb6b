"""Names of temporary files, of which a rank draws the same ones in each run."""

from __future__ import annotations

from typing import Any

from pysmpi.isolation.loading.libraries import PatchedRun, when_loaded

_TRIES = 10_000


@when_loaded("tempfile")
def try_more_names(run: PatchedRun, module: Any) -> None:
    """Let a rank find a free name beside the files that earlier runs have left.

    Python 3.14.10 gives up after 20 names that exist.
    """
    if module.TMP_MAX < _TRIES:
        run.patches.set(module, "TMP_MAX", _TRIES)
