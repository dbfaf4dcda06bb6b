"""The last line says when published packages could not be installed, and were not compared."""

from __future__ import annotations

import os

import pytest

needs_installation = pytest.mark.skipif(
    os.environ.get("PYSMPI_ALL_SUITES") != "1",
    reason="installs packages from the package index: PYSMPI_ALL_SUITES=1 runs it",
)
LEFT_OUT: list[str] = []


def pytest_unconfigure(config: pytest.Config) -> None:
    """After pytest's own last line."""
    if LEFT_OUT:
        print(f"Published packages were not compared (tests/packages): {LEFT_OUT[0]}")
