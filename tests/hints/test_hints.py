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
