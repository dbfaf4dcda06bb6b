"""The distributions of pysmpi, built once for all tests of this directory."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from distributing import (
    ROOT,
    Installation,
    files_of_checkout,
    installation_of,
    tool,
    wheel_of,
)


@pytest.fixture(scope="session")
def source_distribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    copy = folder / "checkout"
    for name in files_of_checkout():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)
    # What a build leaves must not get into the distribution.
    (copy / "pysmpi" / f"left.cpython-{sys.version_info.minor}.so").touch()
    tool("build", "--sdist", "--no-isolation", "--outdir", folder, cwd=copy)
    (archive,) = folder.glob("*.tar.gz")
    return archive


@pytest.fixture(scope="session")
def wheel(source_distribution: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compiled wheel. The compiler does not optimise: that would take twice as long."""
    return wheel_of(source_distribution, tmp_path_factory.mktemp("wheel"), PYSMPI_OPTIMIZE="0")


@pytest.fixture(scope="session")
def compiled(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return installation_of(wheel, tmp_path_factory.mktemp("compiled"))


@pytest.fixture(scope="session")
def interpreted(
    source_distribution: Path, tmp_path_factory: pytest.TempPathFactory
) -> Installation:
    """An installation that is built where there is no compiler."""
    folder = tmp_path_factory.mktemp("interpreted")
    commands = folder / "no-compiler"
    commands.mkdir()
    wheel = wheel_of(source_distribution, folder / "build", PATH=str(commands))
    return installation_of(wheel, folder / "venv")
