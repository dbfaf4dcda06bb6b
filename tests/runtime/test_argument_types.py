"""What `pysmpi.run` says of arguments of the wrong type, and of exceptions without a text."""

from __future__ import annotations

import re
from typing import Any

import pytest

import pysmpi


def program() -> None:
    raise AssertionError("the program does not begin")


class Odd:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


WRONG: list[tuple[str, Any, str]] = [
    ("nprocs", "4", "'4'"), ("nprocs", 2.0, "2.0"), ("nprocs", True, "True"),
    ("nprocs", 10**5000, "a value"), ("nprocs", Odd(), "<Odd instance"),
    ("platform", 3, "3"), ("hostfile", 3, "3"), ("map_by", 3, "3"), ("model", 3, "3"),
    ("memory_model", [], "[]"), ("selector", 3, "3"), ("coll", 3, "3"),
    ("coll", "mpich", "'mpich'"),
    ("coll", {3: "mpich"}, "3"), ("cfg", ["smpi/wtime:3"], "['smpi/wtime:3']"),
    ("compute", None, "None"), ("record_compute", 3, "3"), ("host_speed", None, "None"),
    ("seed", "one", "'one'"), ("seed", 1.5, "1.5"), ("reduction_order", 3, "3"),
    ("on_deadlock", 3, "3"), ("private", "numpy", "'numpy'"), ("private", [3], "[3]"),
    ("shared", 3, "3"), ("trace", 3, "3"), ("sample", 3, "3"), ("once", 3, "3"), ("fold", 3, "3"),
    ("data", None, "None"), ("args", 3, "3"), ("args", "text", "'text'"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "found"), WRONG, ids=lambda value: "")
def test_wrong_types_are_named(name: str, value: Any, found: str) -> None:
    arguments = {"nprocs": 2, "compute": "none", name: value}
    with pytest.raises(pysmpi.UsageError) as caught:
        pysmpi.run(program, **arguments)
    message = str(caught.value)
    assert message.startswith(f"pysmpi.run: {name}: found "), message
    assert f"got {found}" in message, message
    assert re.search(r", expected \w+", message) and "\n" not in message, message


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
