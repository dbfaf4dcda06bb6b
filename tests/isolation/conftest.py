"""The common part of the tests of isolation."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def without_packages_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Remove the packages that a test has written: ranks share packages, which stay loaded."""
    yield
    folder = str(tmp_path_factory.getbasetemp())
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__dict__", {}).get("__file__")
        if isinstance(file, str) and file.startswith(folder):
            del sys.modules[name]
