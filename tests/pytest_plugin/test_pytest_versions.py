"""The project of `versions.py` has the same outcomes with this pytest, the oldest and the newest.

`python -m tests.pytest_plugin.versions` runs all its cases with all minor versions.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.packages.environments import NoNetwork
from tests.pytest_plugin.versions import CASES, QUICK, VERSIONS, environment, run


@pytest.mark.parametrize("name", QUICK)
def test_the_installed_version(name: str) -> None:
    found, said = run(Path(sys.executable), CASES[name])
    assert found == dict(CASES[name].outcome), said


@pytest.mark.peers
@pytest.mark.parametrize("version", [VERSIONS[0], VERSIONS[-1]])
def test_other_versions(version: str) -> None:
    try:
        python = environment(version)
    except NoNetwork as error:
        if os.environ.get("PYSMPI_REQUIRE_SUITES"):
            raise
        pytest.skip(str(error))
    found, said = run(python, CASES["everything"])
    assert found == dict(CASES["everything"].outcome), said
