"""The lists of MPICH's tests, and the verdict on one."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.mpich_suite.__main__ import passes
from tests.mpich_suite.source import Case, cases


def test_a_list_names_programs_with_ranks_and_arguments(tmp_path: Path) -> None:
    folder = tmp_path / "coll"
    folder.mkdir()
    for name in ("one", "two"):
        (folder / f"{name}.c").touch()
    (folder / "testlist").write_text("one 4\n#two 8 arg=-x arg=5\nabsent 2\n\none 4\n# words\n")
    assert cases(tmp_path, "coll") == [
        Case("coll", "one", 4, ()), Case("coll", "two", 8, ("-x", "5"))
    ]  # fmt: skip


def test_a_test_passes_that_ends_well_and_finds_no_errors(tmp_path: Path) -> None:
    def verdict(program: str, seconds: float = 60.0) -> bool:
        return passes([sys.executable, "-c", program], seconds, tmp_path)[0]

    assert verdict("print(' No Errors')")
    assert not verdict("print(' Found 2 errors')")
    assert not verdict("print(' No Errors'); raise SystemExit(3)")
    assert not verdict("import time; print(' No Errors', flush=True); time.sleep(60)", 0.5)
