"""`python -m tests.mpich_suite.sanitized ENGINE ...`: pysmpi with another build of its engine."""

from __future__ import annotations

import importlib
import sys
from importlib.util import module_from_spec, spec_from_file_location

NAME = "pysmpi.abi.engine"


def main() -> None:
    """Load the engine from a file, then run the command line."""
    package = importlib.import_module("pysmpi.abi")
    spec = spec_from_file_location(NAME, sys.argv.pop(1))
    assert spec is not None and spec.loader is not None
    sys.modules[NAME] = engine = module_from_spec(spec)
    spec.loader.exec_module(engine)
    vars(package)["engine"] = engine
    importlib.import_module("pysmpi.__main__").main()


if __name__ == "__main__":
    main()
