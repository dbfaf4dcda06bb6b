"""The list of all ranks at the prompt of the debugger."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pysmpi.debugging.prompt import Prompt


@pytest.mark.parametrize(
    ("calls", "width"),
    [(["here", "in recv()"], 9), (["here", 60 * "x"], 60), (["here", 75 * "x"], 60), ([], 0)],
)
def test_lines_of_the_program_stand_below_each_other(calls: list[str], width: int) -> None:
    """Behind the calls, unless these are long."""
    ranks = [SimpleNamespace(pid=pid, process=SimpleNamespace(debt=pid)) for pid in range(2)]
    shown: list[str] = []
    prompt: Any = SimpleNamespace(
        _places=lambda: [(rank, call, "p.py:1") for rank, call in zip(ranks, calls)],
        shown=ranks[0], simulation=SimpleNamespace(engine=SimpleNamespace(now=1.0)),
        message=shown.append,
    )  # fmt: skip
    Prompt.do_ranks(prompt, "")
    assert shown == [
        f"{mark} rank {pid}  {pid + 1} s  {call.ljust(width)}  p.py:1"
        for pid, (mark, call) in enumerate(zip(("->", "  "), calls))
    ]
