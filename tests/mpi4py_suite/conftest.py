"""Says at the end how many tests of mpi4py's suite passed, were skipped or failed."""

from __future__ import annotations

from typing import Any

import pytest

#: A line for each number of ranks.
SUMMARIES = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SUMMARIES] = []


@pytest.fixture(scope="session")
def summaries(pytestconfig: pytest.Config) -> list[str]:
    """What is to be shown at the end."""
    return pytestconfig.stash[SUMMARIES]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for line in config.stash[SUMMARIES]:
        terminalreporter.write_line(line)
