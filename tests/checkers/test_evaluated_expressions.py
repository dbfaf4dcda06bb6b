"""Expressions of a program that a checker evaluates have Python's value; others have none."""

from __future__ import annotations

import ast
import sys
from typing import Any

import numpy as np
import pytest

from pysmpi.checkers.expressions import Unknown, evaluate

SPACE: dict[str, Any] = {
    "n": 7, "m": 3, "text": "a", "nothing": None, "grid": np.arange(12.0).reshape(3, 4),
    "rows": [4, 5, 6], "table": {"a": 2}, "np": np,
}  # fmt: skip


def evaluated(text: str) -> Any:
    scope = dict(SPACE, sys=sys)
    exec("frame = sys._getframe()", scope)
    return evaluate(ast.parse(text, mode="eval").body, scope["frame"])


@pytest.mark.parametrize(
    "text",
    [
        "n", "12", "-n", "not n", "n + m", "n - m", "n * m", "n // m", "n % m",
        "n == m", "n != m", "n < m", "n <= m", "n > m", "n >= m", "n <= 7", "n >= 7", "n < 7",
        "n > 7", "nothing == n", "text == 'a'", "text != 'a'", "(n, m + 1)", "rows[1]",
        "rows[n - 6]", "rows[0:2]", "rows[::2]", "table['a']", "grid.size", "grid.ndim",
        "grid.shape[1]", "grid.shape[-1]", "np.pi", "not nothing", "not text",
        "[n, m]", "len(rows)", "range(n)", "(k := n)",
    ],
)  # fmt: skip
def test_it_has_the_value_of_python(text: str) -> None:
    assert evaluated(text) == eval(text, dict(SPACE))


@pytest.mark.parametrize("text", ["grid[1]", "grid[1:, 2]", "grid.T", "grid[n - 6:]"])
def test_arrays_are_views(text: str) -> None:
    expected = eval(text, dict(SPACE))
    found = evaluated(text)
    assert np.array_equal(found, expected)
    assert np.shares_memory(found, SPACE["grid"])


@pytest.mark.parametrize(
    "text",
    [
        "missing", "f(n)", "n + text", "n / m", "True + n", "n < text", "grid.dtype",
        "n is m", "0 < n < 9", "text < 'b'", "rows.append", "[missing]", "len",
    ],
)  # fmt: skip
def test_others_have_none(text: str) -> None:
    with pytest.raises(Unknown):
        evaluated(text)


@pytest.mark.parametrize(
    "text",
    [
        "n and m", "nothing and n", "n or missing", "nothing or n", "n < m and missing", "not rows",
        "n == 7 and m == 3 and text == 'a'", "not (n == 7 and m == 4)",
    ],
)  # fmt: skip
def test_conditions_have_the_truth_of_python(text: str) -> None:
    assert evaluated(text) is bool(eval(text, dict(SPACE)))


@pytest.mark.parametrize("text", ["missing and n", "n and missing", "grid and n", "not grid"])
def test_conditions_that_need_another_value_have_none(text: str) -> None:
    with pytest.raises(Unknown):
        evaluated(text)
