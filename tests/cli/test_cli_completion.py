"""Completion of the command line knows options and their values."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from pysmpi.cli.completing import equip
from pysmpi.cli.main import COMMANDS, command
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


def completed(*words: str, begun: str = "") -> list[str]:
    completion = ShellComplete(command, {}, "pysmpi", "_PYSMPI_COMPLETE")
    return [
        item.value if item.type == "plain" else item.type
        for item in completion.get_completions(list(words), begun)
    ]


def test_files_are_completed() -> None:
    assert completed("run", "--trace", begun="t") == ["file"]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("hello.py", "help.txt", "run.jsonl", "old.jsonl.gz", "mine.yaml", ".hidden.py"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_programs_and_recordings_are_completed(directory: Path) -> None:
    for line in (["run"], ["run", "-n", "4"], ["explore", "-n", "4"], ["run", "a.py", ":", "-n2"]):
        assert completed(*line, begun="hel") == ["hello.py"], line
    assert completed("run") == ["hello.py"]
    assert completed("run", "hello.py") == ["file"], "the arguments of the program"
    for line in (["view"], ["replay"], ["replay", "run.jsonl"], ["analyse"], ["trace", "convert"]):
        assert completed(*line) == ["old.jsonl.gz", "run.jsonl"], line
    assert completed("sweep") == ["mine.yaml"]
    assert completed("platform", "check", begun="mi") == ["mine.yaml"]
    assert "graphene" in completed("platform", "show", begun="gr")
    assert completed("view", "run.jsonl", "-o") == ["file"]
    # A directory may be on the way to the file.
    (directory / "helpers").mkdir()
    assert completed("run", begun="hel") == ["file"]
    assert completed("run", begun="none/here") == ["file"]


def test_names_of_arguments_are_completed() -> None:
    assert "allreduce" in completed("collectives", "draw", begun="allr")
    assert "rab_rdb" in completed("collectives", "draw", "allreduce", begun="rab")
    assert "ompi5" in completed("collectives", "draw", "allreduce", begun="omp")
    assert completed("collectives", "draw", "wrong") == completed("run", "--selector")
    assert {"allgather=", "allreduce="} <= set(completed("run", "--coll", begun="all"))
    assert "bcast=binomial_tree" in completed("run", "--coll", begun="bc")
    assert completed("run", "--coll", begun="bcast=binomial_") == ["bcast=binomial_tree"]
    assert completed("run", "--coll", "bcast", "=", begun="binomial_") == ["binomial_tree"]
    assert completed("explain", begun="PSM101") == ["PSM101"]
    assert completed("demo", begun="dead") == ["deadlock"]
    assert "smpi/wtime:" in completed("run", "--cfg", begun="smpi/w")
    assert {"leaks", "all"} <= set(completed("run", "--check"))
    assert "GOLS" in completed("coherence", "check")
    assert "jsonl" in completed("run", "--trace-format", begun="j")
    assert "hybrid" in completed("models", "--explain")


def test_a_line_with_an_error_completes_nothing_and_says_nothing(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_PYSMPI_COMPLETE", "bash_complete")
    for line in ("run -m ", "run -n x ", "run --wrong ", "wrong ", "wrong x ", "run --coll=x y "):
        monkeypatch.setenv("COMP_WORDS", f"pysmpi {line}")
        monkeypatch.setenv("COMP_CWORD", str(len(line.split()) + 1))
        with contextlib.suppress(SystemExit):
            status([])
        output = capfd.readouterr()
        assert output.err == "" and "rror" not in output.out, line


def test_every_name_and_file_of_the_commands_has_its_completion() -> None:
    """All but free values: numbers, sizes, names of things that a program or a user makes."""
    free = {
        "TIME", "FLOPS", "FACTOR", "RANK=FACTOR", "NAME=FACTOR", "N", "ADDRESS", "SIZE", "K",
        "SIZE,SIZE...", "M.N.P,M.N.P...", "VARIABLE=PROCESS", "TURNS", "NAME=VALUE", "TEXT",
        "N,N...", "SECONDS", "S", "SPEED", "NAME", "PERCENT", "NODESxRANKS", "COMMAND",
    }  # fmt: skip
    bare = []

    def walk(one: click.Command, path: str) -> None:
        equip(one, path)
        context = click.Context(one, info_name=path)
        if isinstance(one, click.Group):
            for name in one.list_commands(context):
                inner = one.get_command(context, name)
                assert inner is not None
                walk(inner, f"{path} {name}")
        for param in one.params:
            has = "shell_complete" in vars(param) or param.type.name not in ("text", "str")
            if not has and not getattr(param, "is_flag", False) and param.metavar not in free:
                bare.append(f"{path} {param.name} {param.metavar}")

    for name in COMMANDS:
        context = click.Context(command, info_name="pysmpi")
        one = command.get_command(context, name)
        assert one is not None
        walk(one, name)
    assert bare == [], chr(10).join(bare)


def test_the_command_alone_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert status([]) == 0
    with click.Context(command, info_name="pysmpi") as context:
        assert capsys.readouterr().out.strip() == command.get_help(context).strip()
