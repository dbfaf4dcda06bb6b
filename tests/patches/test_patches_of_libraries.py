"""Patches of libraries: one file each, which can be taken out."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from contextlib import suppress
from pathlib import Path

import pytest

import pysmpi
from pysmpi.isolation.loading.libraries import LIBRARIES, all_containers

PACKAGE = Path(pysmpi.__file__).parent
NAMES = sorted(module.name for module in pkgutil.iter_modules([str(PACKAGE / "patches")]))


def test_patches_are_found_by_the_names_of_their_libraries():
    assert sorted(LIBRARIES.candidates()) == NAMES
    for name in NAMES:
        assert all(module.partition(".")[0] == name for module in LIBRARIES.find(name).functions)
    assert {name.partition(".")[0] for name in all_containers()} <= set(NAMES)


def test_a_run_knows_no_library_by_its_name():
    """The patches of a module stand in a file of their own, and the interpreter walks lists."""
    tree = ast.parse((PACKAGE / "job" / "interpreter.py").read_text())
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    modules = {module for name in NAMES for module in LIBRARIES.find(name).functions}
    assert not texts & modules


def test_nothing_refers_to_a_patch():
    for path in PACKAGE.rglob("*.py"):
        if PACKAGE / "patches" in path.parents:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert not (node.module or "").startswith("pysmpi.patches"), path
            elif isinstance(node, ast.Import):
                assert not any(one.name.startswith("pysmpi.patches") for one in node.names), path


@pytest.fixture(scope="module", autouse=True)
def finders_of_libraries() -> None:
    """Toolz finds `tlz.curried` by an entry of `sys.meta_path`, which does not outlive a run.

    Tests of Dask in this process would miss it.
    """
    with suppress(ImportError):
        importlib.import_module("tlz.curried")


def program(name: str) -> int:
    """Import a library if it is installed, and make a call."""
    from mpi4py import MPI

    try:
        importlib.import_module(name)
    except ImportError:
        pass
    return int(MPI.COMM_WORLD.allreduce(1))


@pytest.mark.parametrize("name", NAMES)
def test_a_run_needs_no_patch(name, monkeypatch):
    """Without the patch of a library, programs that import it run."""
    others = [other for other in NAMES if other != name]
    monkeypatch.setattr(LIBRARIES, "candidates", lambda: others)
    result = pysmpi.run(program, 2, args=(name,), compute="none")
    assert result.returns == [2, 2]


def test_a_run_needs_none_of_the_patches(monkeypatch):
    monkeypatch.setattr(LIBRARIES, "candidates", lambda: [])
    assert pysmpi.run(program, 2, args=("numpy",), compute="none").returns == [2, 2]
