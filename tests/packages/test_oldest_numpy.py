"""The oldest numpy that pysmpi supports, in an environment of its own, under MPICH and pysmpi."""

from __future__ import annotations

import re
import sys
import tomllib

import pytest

from .conftest import LEFT_OUT, needs_installation
from .entries import Entry, Run
from .environments import CHECKOUT, Environments, NoNetwork, cache_folder
from .running import run_entry


def oldest() -> str:
    """The lower bound in pyproject.toml."""
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    (need,) = [one for one in settings["project"]["dependencies"] if one.startswith("numpy")]
    found = re.match(r"numpy>=(\d+\.\d+)", need)
    assert found, need
    return found[1]


@needs_installation
@pytest.mark.skipif(sys.version_info >= (3, 13), reason="numpy 1.26 has no wheel for Python 3.13")
def test_each_rank_has_the_settings_and_generators_of_the_oldest_numpy() -> None:
    version = oldest()
    entry = Entry(
        package="numpy", version=f"{version}.*", field="arrays", environment="oldest-numpy",
        list="oldest", requires=[],
        runs=[Run(program="programs/numpy_per_rank.py", expect=[rf"numpy {version}\."])],
    )  # fmt: skip
    environments = Environments(cache_folder())
    try:
        path = environments.prepare(entry.environment, [entry])
    except NoNetwork as error:
        LEFT_OUT.append(str(error))
        pytest.skip(str(error))
    result = run_entry(entry, environments, path)
    assert result.invalid is None, result.invalid
    assert result.equal, f"{result.difference} [{result.message}]"
