"""Fixtures of the tests of the runtime."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from pysmpi.runtime.loading.rules import Rules


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Write a file with dedented text; returns its path."""

    def write(name: str, text: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return str(path)

    return write


@pytest.fixture
def site(write, tmp_path, monkeypatch):
    """A directory of installed packages."""
    directory = tmp_path / "site"
    directory.mkdir()
    monkeypatch.syspath_prepend(str(directory))
    original = Rules.__init__

    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        self.site = (*self.site, str(directory) + "/")

    monkeypatch.setattr(Rules, "__init__", init)
    return lambda name, text: write(f"site/{name}", text)
