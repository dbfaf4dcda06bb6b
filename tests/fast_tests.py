"""Fast tests use no other process, no network, and no package of the extra `test` alone.

As a plugin of pytest (`-p tests.fast_tests`), the packages are missing from the start, the first
test of each file runs, and properties are tried on few examples.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.metadata
import os
import re
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings


def needed(lines: list[str], project: dict[str, Any]) -> set[str]:
    """The distributions of these requirements, and those that they need."""
    found: set[str] = set()
    waiting = list(lines)
    while waiting:
        line = waiting.pop()
        parts = re.match(r"\s*([\w.-]+)(?:\[([\w., -]+)\])?", line)
        assert parts is not None
        name = re.sub(r"[-_.]+", "-", parts[1]).lower()
        if name == project["name"]:
            for extra in parts[2].split(","):
                waiting += project["optional-dependencies"][extra.strip()]
        elif name not in found and not re.search(r";.*\bextra\b", line):
            found.add(name)
            with suppress(importlib.metadata.PackageNotFoundError):
                waiting += importlib.metadata.requires(name) or []
    return found


@functools.cache
def hidden() -> set[str]:
    """The modules of the distributions that the extra `test` has and `test-fast` has not."""
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    project = tomllib.loads(text)["project"]
    extras = project["optional-dependencies"]
    least = project["dependencies"] + extras["test-fast"]
    only = needed(extras["test"], project) - needed(least, project)
    return {
        module
        for module, names in importlib.metadata.packages_distributions().items()
        if {re.sub(r"[-_.]+", "-", name).lower() for name in names} <= only
    }


class Missing(importlib.abc.MetaPathFinder):
    """Finds no module of these packages."""

    def __init__(self) -> None:
        self.modules = hidden()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] in self.modules:
            raise ModuleNotFoundError(f"No module named {name!r} in fast tests", name=name)


def refuse(*arguments: Any, **keywords: Any) -> None:
    raise AssertionError(f"a fast test starts a process or uses the network: {arguments}")


def create_connection(address: tuple[str, int], *arguments: Any, **keywords: Any) -> Any:
    """As the function of `socket`, to this computer alone."""
    if address[0] not in ("localhost", "127.0.0.1", "::1"):
        refuse(address)
    return CONNECT(address, *arguments, **keywords)


CONNECT = socket.create_connection


@contextmanager
def nothing_else() -> Iterator[None]:
    """Refuse processes and connections; modules of the packages that are loaded stay."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("fork", "forkpty", "posix_spawn", "posix_spawnp", "system"):
            patch.setattr(os, name, refuse, raising=False)
        patch.setattr(subprocess, "Popen", refuse)
        patch.setattr(socket, "create_connection", create_connection)
        patch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
        yield


def pytest_configure() -> None:
    sys.meta_path.insert(0, Missing())
    settings.register_profile("few", max_examples=5, derandomize=True)
    settings.load_profile("few")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    first: dict[Path, pytest.Item] = {}
    for item in items:
        first.setdefault(item.path, item)
    items[:] = first.values()
