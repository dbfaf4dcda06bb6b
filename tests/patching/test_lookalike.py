"""Replacements look like what they replace, and fail as it does."""

from __future__ import annotations

import copy
import inspect
import math
import pickle
import sys
import types
from typing import Any

import pytest

from pysmpi.patching.lookalike import like


def shifted(*args: Any, **kwargs: Any) -> Any:
    return math.hypot(*args, **kwargs) + 1


@pytest.fixture
def hypot(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A replacement of `math.hypot` in its place."""
    real = math.hypot
    new = like(real, lambda *coordinates: real(*coordinates) + 1)
    monkeypatch.setattr(math, "hypot", new)
    return new


def test_a_builtin_function_is_replaced_by_one(hypot: Any) -> None:
    assert type(hypot) is types.BuiltinFunctionType
    assert (hypot.__name__, hypot.__qualname__, hypot.__module__) == ("hypot", "hypot", "math")
    assert "Multidimensional Euclidean distance" in hypot.__doc__
    assert hypot(3, 4) == 6
    assert pickle.loads(pickle.dumps(hypot)) is hypot and copy.deepcopy(hypot) is hypot
    kept = type("Keeps", (), {"distance": hypot})()
    assert kept.distance(3, 4) == 6  # it does not bind


def test_the_signature_is_that_of_the_real_one() -> None:
    new: Any = like(math.copysign, lambda x, y, /: x)
    assert inspect.signature(new) == inspect.signature(math.copysign)
    assert like(dir, lambda *args: []).__doc__ == dir.__doc__


def test_wrong_arguments_raise_the_words_of_the_real_one() -> None:
    real = math.copysign
    new: Any = like(real, lambda x, y, /: 0.0)
    for wrong in ((), (1,), (1, 2, 3)):
        with pytest.raises(TypeError) as wanted:
            real(*wrong)
        with pytest.raises(TypeError) as raised:
            new(*wrong)
        assert str(raised.value) == str(wanted.value)


def test_an_error_inside_the_replacement_is_its_own() -> None:
    def inside(x: float, y: float, /) -> float:
        raise TypeError("made up")

    def deeper(x: float, y: float, /) -> float:
        return len(x)  # type: ignore[arg-type]

    for function, text in ((inside, "made up"), (deeper, "has no len")):
        new: Any = like(math.copysign, function)
        with pytest.raises(TypeError, match=text):
            new(1, 2)


def test_other_callables_may_replace() -> None:
    class Counted:
        def __init__(self) -> None:
            self.calls = 0

        def __call__(self, *args: object) -> int:
            self.calls += 1
            return self.calls

    count = Counted()
    new: Any = like(math.copysign, count)
    assert [new(1, 2), new(1, 2)] == [1, 2] and count.calls == 2
    with pytest.raises(TypeError):
        like(math.copysign, lambda: None)(1)  # type: ignore[call-arg]


def test_a_python_function_is_dressed() -> None:
    def real(first: int, *, second: str = "b") -> bool:
        """What it does."""
        return bool(first)

    new = like(real, lambda *args, **kwargs: not real(*args, **kwargs))
    assert new(0) is True  # type: ignore[no-untyped-call]
    assert type(new) is types.FunctionType
    assert (new.__name__, new.__qualname__) == (real.__name__, real.__qualname__)
    assert (new.__doc__, new.__module__) == ("What it does.", __name__)
    assert inspect.signature(new) == inspect.signature(real)


def test_replacements_can_be_made_and_freed_often() -> None:
    first = sys.getrefcount(shifted)
    for _ in range(100):
        assert like(math.hypot, shifted) is not None
    assert sys.getrefcount(shifted) == first
