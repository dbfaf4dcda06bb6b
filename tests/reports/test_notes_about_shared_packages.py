"""An error in a package that ranks share, and that they have changed: the report tells how."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import pysmpi

PACKAGE = "package_that_ranks_share"
NOTE = (
    f"  note: package {PACKAGE} is loaded once for all ranks, which have changed {PACKAGE}.NAMES; "
    f"if that belongs to one rank, run with --private {PACKAGE}"
)
SOURCE = """
state, table, flag, other, constant = [], {}, None, [], 1

class Kind:
    made = []

def change(*names):
    global flag
    for name in names:
        if name == "state":
            state.append(1)
        elif name == "table":
            table[1] = 2
        elif name == "flag":
            flag = object()
        elif name == "Kind.made":
            Kind.made.append(1)
        elif name == "other":
            other.append(1)

def fail():
    raise ValueError("mine")
"""


@pytest.mark.parametrize(
    ("changed", "failing", "names"),
    [
        (["state"], "package.fail()", "state"),
        (["Kind.made"], "package.fail()", "Kind.made"),
        (["state", "table", "other"], "package.fail()", "state, table, other"),
        (["state", "table", "other", "Kind.made"], "package.fail()", "state, table, other, ..."),
        (["flag"], "package.fail()", None),  # each rank has its own value
        ([], "package.fail()", None),
        (["state"], "raise ValueError('mine')", None),  # not in the package
    ],
)
def test_they_name_what_has_changed(
    tmp_path: Path, changed: list[str], failing: str, names: str | None
) -> None:
    (tmp_path / f"{PACKAGE}.py").write_text(SOURCE)
    program = tmp_path / "program.py"
    program.write_text(f"import {PACKAGE} as package\npackage.change(*{changed})\n{failing}\n")
    try:
        with pytest.raises(pysmpi.ProgramError) as caught:
            pysmpi.run(program, 2, compute="none", shared=[PACKAGE])
    finally:
        sys.modules.pop(PACKAGE, None)
    report = str(caught.value)
    assert "ValueError: mine" in report
    notes = [line for line in report.splitlines() if "note:" in line]
    if names is None:
        assert notes == []
    else:
        changes = ", ".join(
            name if name == "..." else f"{PACKAGE}.{name}" for name in names.split(", ")
        )
        assert notes == [NOTE.replace(f"{PACKAGE}.NAMES", changes)]
