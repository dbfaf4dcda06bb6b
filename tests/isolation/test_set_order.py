"""Under checkers, each rank iterates over sets of texts in an order of its own."""

from __future__ import annotations

import ast
import os
import subprocess
import sys

import pytest

from pysmpi.isolation.loading import set_order


def run(tmp_path, text: str, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "program.py").write_text("from mpi4py import MPI\nc = MPI.COMM_WORLD\n" + text)
    environment = {**os.environ, **variables}
    if "PYTHONHASHSEED" not in variables:
        environment.pop("PYTHONHASHSEED", None)
    return subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "4", *options, "program.py"],
        capture_output=True, text=True, timeout=100, cwd=tmp_path, env=environment,
    )  # fmt: skip


MISMATCH = """
for what in {"sum", "largest", "barrier", "root 0", "root 1"}:
    if what == "sum": c.allreduce(1)
    elif what == "largest": c.allreduce(1, MPI.MAX)
    elif what == "barrier": c.Barrier()
    else: c.bcast(1, root=int(what[-1]))
print("right")
"""


def test_collectives_in_the_order_of_a_set_are_found(tmp_path):
    assert run(tmp_path, MISMATCH).stdout == "right\n" * 4
    found = run(tmp_path, MISMATCH, "--check", "all")
    assert (found.returncode, found.stdout) == (3, "")
    assert "PSM111" in found.stderr
    fixed = run(tmp_path, MISMATCH, "--check", "all", PYTHONHASHSEED="1")
    assert (fixed.returncode, fixed.stdout) == (0, "right\n" * 4)
    in_order = MISMATCH.replace("in {", "in sorted({").replace('1"}', '1"})')
    assert run(tmp_path, in_order, "--check", "all").returncode == 0


WAYS = """
S = {"a", "b", "c", "dd", "ee", b"f", ("g", 1), None, 5, print}
T = set(S)
first, *rest = S
ways = [
    [x for x in S], list(S), [*S], [first, *rest], list(iter(S)), list(map(lambda x: x, S)),
    [x for _, x in enumerate(S)], [x for x, _ in zip(S, S)], list(dict.fromkeys(S)),
    list({x: 1 for x in S}), [T.pop() for _ in range(10)], list(tuple(S)), list(x for x in S),
]
extended = []
extended.extend(S)
assert all(way == extended for way in ways), ways
assert not T and list({3, 1, 2}) == [1, 2, 3] and sum({1.5, 2.5}) == 4
try:
    for x in S: S.add(x * 2 if isinstance(x, str) else x)
except RuntimeError as error: assert "changed size" in str(error)
else: raise AssertionError
mine = "".join({"h", "i", "j", "k", "l", "m"})
print(len(set(c.allgather(mine))), mine)
"""


def test_all_iterations_of_a_rank_have_one_order(tmp_path):
    done = run(tmp_path, WAYS, "--check", "all")
    assert done.returncode == 0, done.stderr
    assert [line[:2] for line in done.stdout.splitlines()] == ["4 "] * 4
    assert run(tmp_path, WAYS, "--check", "all").stdout == done.stdout


def test_a_seed_fixes_the_order_of_sets_between_runs(tmp_path):
    text = "if c.rank == 0: print(list({f'{n}' for n in range(20)}))"
    outputs = [run(tmp_path, text, "--seed", seed).stdout for seed in ("5", "5", "6")]
    assert outputs[0] == outputs[1] != outputs[2]


SOURCES = """
for x in a: pass
else: y = [x for x in a if x for z in x]
list(a); list(*a); f(*a, **b); a.pop(); a.pop(0); a.x.pop(); ",".join(a); a.extend(b)
(x, *y), z = a, b
def g():
    yield from a
    async for x in a: pass
    return {x: y for x, y in a}
list = 3
print(f"{[x for x in a]!r}", max(a), max(a, b), map(f, a), lambda: [*a])
"""


def test_changed_source_keeps_its_lines():
    tree, changed = ast.parse(SOURCES), ast.parse(SOURCES)
    set_order.transform(changed)
    lines = [
        {node.lineno for node in ast.walk(one) if hasattr(node, "lineno")}
        for one in (tree, changed)
    ]
    assert lines[0] == lines[1]
    text = ast.unparse(changed)
    assert text.count("__pysmpi_pop__(") == 2
    assert "list(a)" in text and "max(a, b)" in text and "max(__pysmpi_ordered__(a))" in text


def test_long_expressions_are_changed():
    set_order.transform(ast.parse(" + ".join(["x"] * 900)))


DIFFER = ["a", b"a", ("a",), (1, ("b",)), frozenset("ab"), print, object()]


@pytest.mark.parametrize("element", DIFFER, ids=[type(one).__name__ for one in DIFFER])
def test_elements_whose_hash_differs_between_processes(element):
    assert set_order._text(element) is not None


@pytest.mark.parametrize("element", [1, 1.5, 2j, True, (1, 2), frozenset((1,)), ()])
def test_elements_whose_hash_is_the_same_in_all_processes(element):
    assert set_order._text(element) is None
