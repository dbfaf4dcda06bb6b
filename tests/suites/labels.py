"""Labels of the suites' programs: ranks, arguments, kind of error, lines at fault."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from tests.mbi.source import Code, codes


def labelled(path: Path) -> Iterator[Code]:
    """The tests that a file describes, by the form of its label."""
    text = path.read_text(errors="replace")
    if "BEGIN_MBI_TESTS" in text:
        yield from codes(path)
    elif "BEGIN_MBB_TESTS" in text:
        for ranks, outcome in re.findall(r"\$ mpirun -np (\d+) \${EXE}\n\s*\| (.*)", text):
            kind = outcome.partition("ERROR")[2].strip(": ")
            kind = path.name.partition("-")[0] if outcome.startswith("ERROR") and not kind else kind
            yield Code(path, int(ranks), (), True, kind, _marked(text) if kind else frozenset())
    elif "RACE LABELS BEGIN" in text:
        found = re.search(r"RACE LABELS BEGIN\n/\*\n(.*?)\n\*/", text, re.S)
        assert found is not None, path
        label = json.loads(found[1])
        kind = "" if label["RACE_KIND"] == "none" else label["RACE_KIND"] + " race"
        lines = {int(each.partition("@")[2]) for each in label.get("RACE_PAIR", []) if kind}
        yield Code(path, label["NPROCS"], (), True, kind, frozenset(lines))
    elif named := re.search(r"-(local|remote)-(yes|no)$", path.stem):
        kind = f"{named[1]} race" if named[2] == "yes" else ""
        ranks = re.search(r"#define PROC_NUM (\d+)", text)
        yield Code(path, int(ranks[1]) if ranks else 2, (), True, kind,
                   _marked(text, "// CONFLICT", 1) if kind else frozenset())  # fmt: skip
    elif lists := [*path.parent.glob("testlist*"), *path.parent.parent.glob("testlist*")]:
        # Of MPICH: a correct program.
        ranks_of = "\n".join(each.read_text() for each in lists)
        named = re.search(rf"^{re.escape(path.stem)} (\d+)", ranks_of, re.M)
        yield Code(path, min(4, int(named[1])) if named else 2, (), True, "", frozenset())
    else:
        correct = "correct" in path.parts
        kind = "" if correct else _kind(path)
        lines = set() if correct else {int(each) for each in re.findall(r"\(?lines? (\d+)", text)}
        yield Code(path, 2, (), True, kind,
                   frozenset(lines))  # fmt: skip


def _marked(text: str, mark: str = "MBBERROR", below: int = 0) -> frozenset[int]:
    """The lines with a mark, or so many lines below it."""
    return frozenset(
        number + below for number, line in enumerate(text.splitlines(), 1) if mark in line
    )


def _kind(path: Path) -> str:
    """The folders below the suite's, or the first part of the name."""
    if "openmp" in path.parts:
        return "/".join(path.parts[path.parts.index("openmp") : -1])
    group = "conflo/" if "conflo" in path.parts else ""
    return f"{group}{path.parent.name} {path.name.partition('-')[0]}"
