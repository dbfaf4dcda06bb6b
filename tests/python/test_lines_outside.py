"""The line of a program in which code of pysmpi, or of another package, is called."""

from __future__ import annotations

from typing import Any

import pytest

from pysmpi.python.frames import line_outside


@pytest.mark.parametrize("levels", [0, 1, 3])
@pytest.mark.parametrize(
    ("skipped", "line"),
    [({"inner.py"}, ("outer.py", 2)), (set(), ("inner.py", 2)), ({"outer.py"}, ("inner.py", 2))],
)
def test_the_innermost_line_that_is_not_skipped(
    levels: int, skipped: set[str], line: tuple[str, int]
) -> None:
    """Calls of any depth count as one."""
    inner = "def call(levels):\n    return call(levels - 1) if levels else find()\n"
    outer = "\nfound = call(levels)\n"
    space: dict[str, Any] = {
        "levels": levels, "find": lambda: line_outside(lambda file: file in {__file__, *skipped}),
    }  # fmt: skip
    for text, file in ((inner, "inner.py"), (outer, "outer.py")):
        exec(compile(text, file, "exec"), space)
    assert space["found"] == line


def test_there_may_be_none() -> None:
    assert line_outside(lambda file: True) is None
    here = line_outside(lambda file: False)
    assert here is not None and here[0] == __file__
