"""The pages about the command line are true."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import fields
from pathlib import Path

import click
from click.testing import CliRunner

from pysmpi.cli.main import COMMANDS
from pysmpi.cli.main import command as cli
from pysmpi.cli.run import command
from pysmpi.replay.replay import ReplayResult

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "reference" / "cli.md").read_text()


def test_pages_made_from_the_code_are_up_to_date():
    specification = importlib.util.spec_from_file_location("renew", DOCS / "renew.py")
    assert specification is not None and specification.loader is not None
    renew = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(renew)
    pages = renew.pages()
    assert len(pages) > 30
    assert not set((DOCS / "reference" / "diagnostics").iterdir()) - set(pages)
    for path, text in pages.items():
        assert path.read_text() == text, "run python docs/renew.py"


def test_every_option_of_the_table_is_an_option_of_run():
    table = PAGE.partition("## pysmpi run")[2].partition("\n## ")[0]
    described = set(re.findall(r"`(--?[a-z-]+)`", table))
    known = {spelling for param in command.params for spelling in param.opts}
    assert len(described) > 20
    assert described <= known


def test_every_command_is_there():
    for name in COMMANDS:
        assert f"## pysmpi {name}\n" in PAGE


def test_synopsis_has_every_command_and_subcommand():
    synopsis = PAGE.partition("```\n")[2].partition("```")[0]
    named: dict[str, set[str]] = {}
    for line in synopsis.splitlines():
        match = re.match(r"pysmpi ([a-z]+) ?([a-z|]*)", line)
        if match:
            named.setdefault(match[1], set()).update(match[2].split("|"))
    for name in COMMANDS:
        group = cli.get_command(click.Context(cli), name)
        assert name in named
        if isinstance(group, click.Group):
            subcommands = set(group.list_commands(click.Context(group))) - {"list"}
            assert subcommands <= named[name], name


def test_the_example_of_replay_uses_attributes_of_its_result():
    used = re.findall(r"result\.([a-z_]+)", (DOCS / "reference" / "replay.md").read_text())
    assert used and set(used) <= {field.name for field in fields(ReplayResult)}


def test_the_drawing_of_the_readme_is_up_to_date(tmp_path: Path):
    readme = (DOCS.parent / "README.md").read_text()
    match = re.search(r"`pysmpi (collectives draw .*) -o allreduce.svg`", readme)
    assert match is not None
    drawn = tmp_path / "allreduce.svg"
    result = CliRunner().invoke(cli, [*match[1].split(), "-o", str(drawn)])
    assert result.exit_code == 0
    assert drawn.read_text() == (DOCS / "pictures" / "allreduce.svg").read_text()
