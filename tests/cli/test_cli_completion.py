"""Completion of the command line knows options and their values."""

from __future__ import annotations

import click
import pytest
from click.shell_completion import ShellComplete

from pysmpi.cli.main import command
from pysmpi.cli.main import status_of as status


@pytest.mark.parametrize(
    ("words", "begun", "found"),
    [
        (["run", "--platform"], "graph", {"graphene"}),
        (["run", "--map-by"], "", {"core", "socket", "node", "ppr:N:node"}),
        (["run", "--model"], "hyb", {"hybrid"}),
        (["run", "--selector"], "mpich", {"mpich", "mpich4"}),
        (["run", "--compute"], "n", {"native", "none"}),
        (["run", "--memory-model"], "pipe", {"pipelined"}),
        (["run"], "--sel", {"--selector"}),
        (["replay", "--platform"], "graph", {"graphene"}),
        (["run", "--coll"], "allreduce=r", {"allreduce=rdb", "allreduce=rab_rdb"}),
        (["run", "--check"], "", {"all", "races"}),
        (["run", "--trace-format"], "", {"jsonl", "otf2"}),
        (["demo"], "d", {"deadlock"}),
        (["explain"], "PSM1", {"PSM101", "PSM121"}),
        (["platform", "show"], "graph", {"graphene"}),
        (["collectives"], "all", {"allreduce", "alltoall"}),
        (["collectives", "list"], "all", {"allreduce", "alltoall"}),
        (["collectives", "draw"], "allr", {"allreduce"}),
        (["collectives", "draw", "allreduce"], "", {"rdb", "ompi5"}),
    ],
)
def test_names_are_completed(words: list[str], begun: str, found: set[str]) -> None:
    completion = ShellComplete(command, {}, "pysmpi", "_PYSMPI_COMPLETE")
    values = {item.value for item in completion.get_completions(words, begun)}
    assert found <= values
    assert all(value.startswith(begun) for value in values)


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--trace"], ["run"], ["run", "-n", "4"], ["run", "-n", "4", "app.py"],
        ["explore"], ["view"], ["analyse"], ["replay"], ["extrapolate"], ["extrapolate", "x"],
        ["sweep"], ["trace", "convert"], ["trace", "convert", "x"], ["platform", "check"],
    ],
)  # fmt: skip
def test_files_are_completed(words: list[str]) -> None:
    completion = ShellComplete(command, {}, "pysmpi", "_PYSMPI_COMPLETE")
    found = completion.get_completions(words, "t/x")
    assert [item.type for item in found] == ["file"]


def test_the_command_alone_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert status([]) == 0
    with click.Context(command, info_name="pysmpi") as context:
        assert capsys.readouterr().out.strip() == command.get_help(context).strip()
