"""The pages about the command line say what it does."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import click

from pysmpi.cli.main import COMMANDS
from pysmpi.cli.run import command

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "cli.md").read_text()


def test_pages_made_from_the_code_are_up_to_date():
    specification = importlib.util.spec_from_file_location("renew", DOCS / "renew.py")
    assert specification is not None and specification.loader is not None
    renew = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(renew)
    pages = renew.pages()
    assert sorted(path.name for path in pages) == ["api.md", "cli.md", "diagnostics.md"]
    for path, text in pages.items():
        assert path.read_text() == text, "run python docs/renew.py"


def test_every_option_of_run_is_there():
    table = PAGE.partition("## pysmpi run")[2].partition("### ")[0]
    described = set(re.findall(r"`(--?[a-z-]+)`", table))
    known = set()
    for param in command.params:
        assert isinstance(param, click.Option)
        assert described & set(param.opts), param.opts
        known |= set(param.opts)
    assert described <= known


def test_every_command_is_there():
    for name in COMMANDS:
        assert f"## pysmpi {name}\n" in PAGE
