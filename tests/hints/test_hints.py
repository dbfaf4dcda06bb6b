"""The hints of programs do their part outside of simulations, and in one what it wants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pysmpi import hints


def test_a_simulation_gives_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []
    common = np.zeros(6)

    def allocate(*request: Any) -> Any:
        asked.append(request)
        return common if len(asked) == 1 else None

    monkeypatch.setattr(hints, "allocate", allocate)
    assert hints.shared_empty(6, private=[0]) is common
    other = hints.shared_empty((2, 3), "i4", private=(index for index in (0, 1)))
    assert other is not common and other.shape == (2, 3) and other.dtype == np.int32
    assert [request[:3] for request in asked] == [
        (6, np.dtype(float), [0]), ((2, 3), np.dtype("i4"), [0, 1]),
    ]  # fmt: skip


def test_without_one_an_array_is_an_array() -> None:
    one, two = (hints.shared_empty(3, private=[0, -1]) for _ in range(2))
    assert one.shape == (3,) and not np.shares_memory(one, two)
    with pytest.raises(IndexError):
        hints.shared_empty(3, private=[3])


def test_touches_are_told_to_a_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    touched: list[tuple[object, bool]] = []
    monkeypatch.setattr(hints, "touched", lambda array, write: touched.append((array, write)))
    hints.touch("a")
    hints.touch("b", write=True)
    assert touched == [("a", False), ("b", True)]
    monkeypatch.setattr(hints, "touched", None)
    hints.touch("c")


def test_without_a_simulation_a_sampled_part_is_executed_as_a_whole() -> None:
    passes = []
    for value in hints.sample(range(100), iters=1):
        passes.append(value)
    assert passes == list(range(100))
    for _ in range(3):
        with hints.sample(iters=1) as block:
            passes.append(block.iters)
    assert passes[100:] == [1, 1, 1]
    with pytest.raises(KeyError, match="mine"), hints.sample(iters=1):
        raise KeyError("mine")

    @hints.sample
    def plain(a: int, b: int = 0) -> tuple[int, int]:
        """Its text."""
        return a, b

    @hints.sample(precision=0.1)
    def named(a: int, b: int = 0) -> tuple[int, int]:
        """Its text."""
        return a, b

    class Kind:
        @hints.sample
        def method(self, a: int) -> tuple[object, int]:
            return self, a

    for function in (plain, named):
        assert function(1, b=2) == (1, 2) and function.__doc__ == "Its text."
    one = Kind()
    assert one.method(3) == (one, 3) and isinstance(Kind.method, hints.sample)
    with pytest.raises(TypeError, match="expected an iterable in a loop, got None"):
        list(hints.sample())
    for arguments in ((), (5,), (len, len)):
        with pytest.raises(TypeError, match="expected a function to decorate"):
            hints.sample(iters=1)(*arguments)
    hints.execute(5.0)


def test_a_simulation_decides_about_sampled_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[object, ...]] = []

    class Sampling:
        def loop(self, part: object) -> Any:
            heard.append(("loop", part))
            return iter([7])

        def enter_block(self, part: object) -> bool:
            heard.append(("enter", part))
            return False

        def leave_block(self, part: object, error: BaseException | None) -> object:
            heard.append(("leave", part, type(error)))
            return error is not None and str(error) == "its own"

        def call(self, part: object, function: Any, args: Any, kwargs: Any) -> object:
            heard.append(("call", function(*args, **kwargs)))
            return "instead"

    loop, block = hints.sample(range(3)), hints.sample()
    function, decorated = hints.sample(lambda a: a), hints.sample(iters=2)(lambda a: a)
    monkeypatch.setattr(hints, "sampling", Sampling())
    executed: list[float] = []
    monkeypatch.setattr(hints, "executed", executed.append)
    assert list(loop) == [7]
    with block:
        pass
    with block:
        raise ValueError("its own")  # a simulation ends a skipped block with an error
    with pytest.raises(ValueError, match="mine"), block:
        raise ValueError("mine")
    assert function(1) == decorated(2) == "instead"
    hints.execute(5)
    enter, errors = ("enter", block), (type(None), ValueError, ValueError)
    assert heard == [
        ("loop", loop),
        *(event for error in errors for event in (enter, ("leave", block, error))),
        ("call", 1), ("call", 2),
    ]  # fmt: skip
    assert executed == [5.0]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"scope": "all"}, "scope: expected local, global or collective, got 'all'"),
        ({"by": "size"}, "by: expected shape, type or none, got 'size'"),
        ({"charge": "max"}, "charge: expected mean, median or draw, got 'max'"),
        ({"outputs": "drop"}, "outputs: expected keep, scale or leave, got 'drop'"),
        ({"iters": 0}, "iters: expected at least 1, got 0"),
        ({"precision": 0.0}, "precision: expected a relative error below 1, got 0.0"),
        ({"precision": 1.0}, "precision: expected a relative error below 1, got 1.0"),
        ({"warmup": -1}, "warmup: expected 0 or more passes, got -1"),
        ({"every": 1}, "every: expected 2 or more passes, got 1"),
        ({"scope": "collective", "precision": 0.1}, "precision: expected none with scope="),
    ],
)
def test_wrong_parameters_are_refused_without_a_simulation(
    parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError) as caught:
        hints.sample(**parameters)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("parameters", [
    {"iters": 1}, {"precision": 0.5}, {"warmup": 0}, {"every": 2}, {"scope": "collective"},
    {"scope": "global", "precision": 0.1}, {"by": "none"}, {"charge": "draw"}, {"outputs": "leave"},
])  # fmt: skip
def test_parameters_next_to_wrong_ones_are_accepted(parameters: dict[str, Any]) -> None:
    part = hints.sample(**parameters)
    assert {**vars(part), **part.options}.items() >= parameters.items()


@pytest.mark.parametrize("flops", [-1.0, float("inf"), float("nan")])
def test_no_number_of_operations(flops: float) -> None:
    with pytest.raises(ValueError, match="expected a number of operations from 0 on, got "):
        hints.execute(flops)
