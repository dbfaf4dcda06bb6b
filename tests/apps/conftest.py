"""The common part of tests of applications: the programs, and the launchers that run them."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import types
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

APPS = Path(__file__).resolve().parents[2] / "apps"


@cache
def finished(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, once for all tests: its results do not change."""
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.fixture
def mpiexec() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run an application under the real mpiexec: mpiexec(ranks, "nbody.py", "--steps", "3")."""
    launcher = shutil.which("mpiexec")
    if launcher is None:
        pytest.skip("mpiexec is not on this machine: pip install mpich")

    def run(ranks: int, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        start = (launcher, "-n", str(ranks), sys.executable)
        return finished(*start, str(APPS / program), *arguments)

    return run


@pytest.fixture
def simulated() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run an application under pysmpi: simulated(ranks, "nbody.py", "--steps", "3")."""

    def run(ranks: int, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pysmpi", "run", "-n", str(ranks), "--compute", "none"]
        return finished(*command, str(APPS / program), *arguments)

    return run


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], types.ModuleType]:
    """Load an application as a module without any MPI, to test its parts."""
    stand_in = types.ModuleType("mpi4py")
    stand_in.MPI = types.SimpleNamespace()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mpi4py", stand_in)

    def load_one(name: str) -> types.ModuleType:
        specification = importlib.util.spec_from_file_location(f"app_{name}", APPS / f"{name}.py")
        assert specification is not None and specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        specification.loader.exec_module(module)
        return module

    return load_one
