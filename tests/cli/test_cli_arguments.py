"""The end of the options of `pysmpi run` and the begin of the program."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pysmpi.cli.arguments import IGNORED, is_python, pairs, split
from pysmpi.errors import UsageError

ARITY = {"-n": 1, "--np": 1, "--quiet": 0, "--cfg": 1}


def test_options_end_at_the_program():
    line = split(["-n", "4", "--quiet", "prog.py", "-n", "5", "-m", "x"], ARITY)
    assert line.options == ["-n", "4", "--quiet"]
    assert (line.kind, line.target) == ("script", "prog.py")
    assert line.arguments == ["-n", "5", "-m", "x"]


def test_equals_and_attached_values():
    line = split(["--np=4", "-n4", "--cfg=a:b", "prog.py"], ARITY)
    assert line.options == ["--np=4", "-n4", "--cfg=a:b"]
    assert line.target == "prog.py"


def test_module_and_command_take_the_rest():
    line = split(["-n", "4", "-m", "pkg.mod", "--quiet"], ARITY)
    assert (line.kind, line.target, line.arguments) == ("module", "pkg.mod", ["--quiet"])
    line = split(["-c", "pass", "-n", "1"], ARITY)
    assert (line.kind, line.target, line.arguments) == ("command", "pass", ["-n", "1"])


@pytest.mark.parametrize(
    "words, expected",
    [
        (["python", "p.py", "-u"], ("script", "p.py", ["-u"])),
        (["python3.12", "-u", "-OO", "p.py"], ("script", "p.py", [])),
        ([sys.executable, "-W", "error", "-X", "dev", "p.py"], ("script", "p.py", [])),
        (["python", "-Werror", "-m", "mod", "a"], ("module", "mod", ["a"])),
        (["python", "-mmod", "a"], ("module", "mod", ["a"])),
        (["python", "-c", "pass", "a"], ("command", "pass", ["a"])),
        (["python", "-", "a"], ("script", "-", ["a"])),
        (["python", "--", "p.py"], ("script", "p.py", [])),
        (["pythonic.py"], ("script", "pythonic.py", [])),
        (["-"], ("script", "-", [])),
        (["--", "python", "p.py"], ("script", "p.py", [])),
    ],
)
def test_python_is_skipped(words, expected):
    line = split(words, ARITY)
    assert (line.kind, line.target, line.arguments) == expected


def test_a_script_called_python(tmp_path, monkeypatch):
    (tmp_path / "python").write_text("pass")
    monkeypatch.chdir(tmp_path)
    assert not is_python("python")
    assert is_python("/usr/bin/python3")


@given(st.lists(st.sampled_from(sorted(IGNORED)), max_size=5), st.booleans())
def test_words_of_launchers_are_ignored(names, long):
    words: list[str] = []
    for name in names:
        words += [("--" if long else "-") + name, *["value"] * IGNORED[name]]
    line = split([*words, "-n", "3", "prog.py"], ARITY)
    assert line.options == ["-n", "3"]
    assert line.target == "prog.py"
    assert len(line.ignored) == len(names)


@given(st.lists(st.text(min_size=1), max_size=4))
def test_arguments_of_the_program_are_left_alone(arguments):
    assert split(["prog.py", *arguments], ARITY).arguments == arguments


def test_variables():
    line = split(["-x", "A", "-x", "B=1", "-genv", "C", "2", "-env", "D=3", "prog.py"], ARITY)
    assert line.environment == {"C": "2"}
    assert line.own == {"A": None, "B": "1", "D": "3"}


def test_pairs():
    assert pairs(["a=1", "b=c=d"], "--coll", "x=y") == {"a": "1", "b": "c=d"}
    for word in ("a", "a=", "=a"):
        with pytest.raises(UsageError, match="expected NAME=VALUE, such as x=y"):
            pairs([word], "--coll", "x=y")
