"""Messages about arguments of the wrong type, and about exceptions without a text."""

from __future__ import annotations

import collections.abc
import re
import types
import typing
from pathlib import Path
from typing import Any

import pytest

import pysmpi
from pysmpi.cli.main import status_of
from pysmpi.cli.run_options import on_command_line
from pysmpi.job.options import FIELDS, check_value, in_python
from pysmpi.platform.model import Platform


def program() -> None:
    raise AssertionError("the program does not begin")


class Odd:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


WRONG: list[tuple[str, Any, str]] = [
    ("nprocs", "4", "'4'"), ("nprocs", 2.0, "2.0"), ("nprocs", True, "True"),
    ("nprocs", 10**5000, "a value"), ("nprocs", Odd(), "<Odd instance"),
    ("platform", 3, "3"), ("hostfile", 3, "3"), ("map_by", 3, "3"), ("model", 3, "3"),
    ("memory_model", [], "[]"), ("memory_bound", [], "[]"), ("selector", 3, "3"), ("coll", 3, "3"),
    ("coll", "mpich", "'mpich'"),
    ("coll", {3: "mpich"}, "3"), ("cfg", ["smpi/wtime:3"], "['smpi/wtime:3']"),
    ("compute", None, "None"), ("record_compute", 3, "3"), ("host_speed", None, "None"),
    ("seed", "one", "'one'"), ("seed", 1.5, "1.5"), ("reduction_order", 3, "3"),
    ("on_deadlock", 3, "3"), ("private", "numpy", "'numpy'"), ("private", [3], "[3]"),
    ("shared", 3, "3"), ("trace", 3, "3"), ("sample", 3, "3"), ("once", 3, "3"), ("fold", 3, "3"),
    ("noise", 3, "3"), ("data", None, "None"), ("args", 3, "3"), ("args", "text", "'text'"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "found"), WRONG, ids=lambda value: "")
def test_wrong_types_are_named(name: str, value: Any, found: str) -> None:
    arguments = {"nprocs": 2, "compute": "none", name: value}
    with pytest.raises(pysmpi.UsageError) as caught:
        pysmpi.run(program, **arguments)
    message = str(caught.value)
    assert message.startswith(f"pysmpi.run: {name}: expected "), message
    assert f"got {found}" in message, message
    assert re.search(r": expected \w+", message) and "\n" not in message, message


VALUES: list[Any] = [
    None, True, False, 0, 3, -1, 2.5, 3j, "", "x", b"x", Path("x"), [], ["x"], ["x", ""], [3], (),
    ("x",), {"x"}, {}, {"x": "y"}, {3: "y"}, {"x": 3}, range(2), object(), Odd(), int, len,
]  # fmt: skip


def fits(value: Any, hint: Any) -> bool:
    """Whether a value has the declared type. Texts are no sequences, truth values no numbers."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return any(fits(value, one) for one in typing.get_args(hint))
    if typing.get_origin(hint) is typing.Literal:
        return value in typing.get_args(hint)
    if typing.get_origin(hint) is collections.abc.Sequence:
        inner = typing.get_args(hint)[0]
        return isinstance(value, (list, tuple, set)) and all(fits(one, inner) for one in value)
    if typing.get_origin(hint) is collections.abc.Mapping:
        entries = typing.get_args(hint)[1]
        return isinstance(value, dict) and all(
            isinstance(key, str) and fits(entry, entries) for key, entry in value.items()
        )
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is str:
        return isinstance(value, str) and value != ""
    return isinstance(value, typing.get_origin(hint) or hint)


# Values of the declared types that are wrong all the same.
REFUSED = {"nprocs": [0, -1], "map_by": ["x"], "rank_by": ["x"]}


@pytest.mark.parametrize("name", FIELDS)
def test_an_option_takes_the_values_of_its_declared_type_and_no_others(name: str) -> None:
    hint = typing.get_type_hints(pysmpi.Options, localns={"Platform": Platform})[name]
    for value in VALUES:
        if fits(value, hint) and value not in REFUSED.get(name, []):
            check_value(name, value)
            continue
        messages = []
        for where in (in_python, on_command_line):
            with pytest.raises(pysmpi.UsageError) as caught:
                check_value(name, value, where)
            messages.append(str(caught.value).removeprefix(where(name)))
        assert messages[0] == messages[1]
        assert re.match(r"(\[.*\])?: expected \w", messages[0]) and ", got " in messages[0]
        assert "\n" not in messages[0]


# Texts of options that are refused before the program begins.
WRONG_TEXTS: list[tuple[str, Any]] = [
    ("platform", "nowhere"), ("hostfile", "nope"), ("model", "newton"), ("memory_model", "x"),
    ("selector", "x"), ("compute", "nope"), ("compute", -1.0), ("host_speed", "fast"),
    ("host_speed", "-3"), ("schedule", "never"), ("replay_schedule", "x"), ("trace", "t.bin"),
    ("trace", "/no/where/t.json"), ("trace_format", "x"), ("view", "/no/where/v.html"),
    ("report", "/no/where/r.json"), ("view", ""), ("report", ""), ("record_compute", ""),
    ("check", "nope"), ("fault", "x"), ("fault", "rank=9@1s"), ("noise", "x"),
    ("private", ["not a name"]),
    ("shared", [""]), ("sample", "x"), ("once", "x"), ("fold", "x"), ("data", "x"),
    ("coll", {"bcast": "x"}), ("coll", {"x": "x"}), ("cfg", {"smpi/wtime": "x"}), ("seed", "x"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), WRONG_TEXTS)
def test_the_command_line_says_the_same(
    name: str, value: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(pysmpi.UsageError) as caught:
        pysmpi.run(program, **{"nprocs": 2, "compute": "none", name: value})
    message = str(caught.value)
    assert "\n" not in message
    if isinstance(value, dict):
        joint = "=" if name == "coll" else ":"
        words = [f"{key}{joint}{entry}" for key, entry in value.items()]
    else:
        words = value if isinstance(value, list) else [str(value)]
    command = ["run", "-n", "2", "--compute", "none"]
    for word in words:
        command += [on_command_line(name), word]
    assert status_of([*command, "-c", "raise AssertionError"]) == 2
    line = capsys.readouterr().err
    wanted = message.replace(in_python(name), on_command_line(name))
    if isinstance(value, list):
        wanted = wanted.replace(repr(value), repr(tuple(value)))
    assert line == f"pysmpi: error: {wanted}\n"


@pytest.mark.parametrize("name, key", [("cfg", "smpi/wtime"), ("coll", "bcast")])
def test_so_are_entries(name: str, key: str) -> None:
    with pytest.raises(pysmpi.UsageError) as caught:
        pysmpi.run(program, 2, compute="none", **{name: {key: 3}})
    assert str(caught.value) == f"pysmpi.run: {name}['{key}']: expected a string, got 3"


@pytest.mark.parametrize("main", [3, None, [(3, 2)]])
def test_so_is_what_is_no_program(main: Any) -> None:
    with pytest.raises(pysmpi.UsageError, match="^pysmpi.run: expected a function.*got (3|None)"):
        pysmpi.run(main, compute="none")


def test_numbers_of_numpy_are_whole_numbers() -> None:
    import numpy

    result = pysmpi.run(lambda: None, numpy.int64(2), compute="none", seed=numpy.int32(3))
    assert (result.nprocs, result.seed) == (2, 3)
    assert {type(result.nprocs), type(result.seed)} == {int}


def test_long_numbers_are_cut_in_messages() -> None:
    with pytest.raises(pysmpi.UsageError) as caught:
        pysmpi.run(program, 2, compute="none", cfg={"smpi/wtime": "9" * 5000})
    assert str(caught.value).endswith("got '9999999999...(5,000 digits)'")


@pytest.mark.parametrize("kind", [Exception, BaseException])
def test_an_exception_whose_text_fails(kind: type[BaseException]) -> None:
    class Mute(kind):  # type: ignore[misc, valid-type]
        def __str__(self) -> str:
            raise RuntimeError("no text")

    def fail() -> None:
        raise Mute(1)

    result = pysmpi.run(fail, 2, compute="none", check=False)
    assert result.exit_status == 1
    assert "raise Mute(1)" in str(result.error)
    assert "<exception str() failed>" in str(result.error)
