"""The code objects of each rank."""

from __future__ import annotations

import json
from types import CodeType

import pytest

import pysmpi
from pysmpi.isolation.loading import own_code
from pysmpi.isolation.loading.own_code import OwnCode, copied, size

TEXT = """
def outer():
    def inner(x):
        return [x + one for one in (1, 2)]
    return inner

class Point:
    def norm(self):
        return (lambda: 3)()
"""
PROGRAM = """
import json, sys
from mpi4py import MPI
import beside

class Here:
    def method(self):
        pass

def codes():
    return [id(codes.__code__), id(Here.method.__code__), id(beside.Point.norm.__code__)]

every = MPI.COMM_WORLD.gather(codes())
if every:
    json.dump(every, open(sys.argv[1], "w"))
"""


def nested(code: CodeType) -> list[CodeType]:
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    return [code, *(deeper for one in inner for deeper in nested(one))]


def test_a_copy_has_the_same_text_and_no_common_code_object():
    code = compile(TEXT, "text.py", "exec")
    copy = copied(code)
    assert copy == code
    before, after = nested(code), nested(copy)
    assert len(before) == len(after) >= 5
    assert not {id(one) for one in before} & {id(one) for one in after}
    space: dict = {}
    exec(copy, space)
    assert space["outer"]()(5) == [6, 7] and space["Point"]().norm() == 3


def test_ranks_share_code_whose_copies_would_be_too_large(monkeypatch):
    code = compile(TEXT, "text.py", "exec")
    monkeypatch.setattr(own_code, "MOST", 4 * size(code))
    assert OwnCode(4).of(code) is not code
    assert OwnCode(5).of(code) is code


@pytest.mark.parametrize("compute, ranks_have_their_own", [("native", True), ("none", False)])
def test_measured_ranks_have_code_of_their_own(write, tmp_path, compute, ranks_have_their_own):
    write("beside.py", TEXT)
    path, target = write("program.py", PROGRAM), tmp_path / "codes.json"
    pysmpi.run(path, 2, args=(str(target),), compute=compute)
    first, second = json.loads(target.read_text())
    assert [a != b for a, b in zip(first, second)] == [ranks_have_their_own] * 3
