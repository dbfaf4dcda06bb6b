"""Tables, selections, layouts, the cache, and algorithms of other distributions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pysmpi.collectives import registry, trees
from pysmpi.collectives.building import build
from pysmpi.collectives.cache import ScheduleCache
from pysmpi.collectives.call import Call
from pysmpi.collectives.layout import NodeLayout, Nodes
from pysmpi.collectives.patterns import (
    blocks_of,
    doubling_rounds,
    mesh2,
    mesh3,
    segment_count,
    segments,
)
from pysmpi.collectives.registry import split
from pysmpi.collectives.selection import Selection
from pysmpi.collectives.selectors.tables import Row, Tables
from pysmpi.errors import UsageError
from pysmpi.kernel.schedule import Schedule

PAGE = Path(__file__).resolve().parents[2] / "docs" / "contributing" / "collectives.md"


def test_row_limits() -> None:
    row = Row("<8:a <=1K:b else:c")
    assert [row.choose(n) for n in (0, 7, 8, 1024, 1025, 10**9)] == list("aabbcc")


def test_table_lines_continuation_and_names() -> None:
    text = """
names 3=three
bcast  # of a library
    names    1=one
    names    2=two
    P == 2   x
    P < 8    <1K:1
             <2K:2 else:3
    P <= 16  1*
    else     2
bcast in order
    like     bcast
reduce
    else     3
"""
    tables = Tables("x.table", text)
    for table in tables["bcast"], tables["bcast in order"]:
        assert table.choose(2, 0) == "x"
        assert [table.choose(4, n) for n in (1023, 1024, 2048)] == ["one", "two", "3"]
        assert table.choose(16, 0) == "one*"
        assert table.choose(17, 0) == "two"
    assert tables["reduce"].choose(5, 0) == "three"


@pytest.mark.parametrize(
    ("op", "size", "nbytes", "name"),
    [
        ("bcast", 16, 1 << 20, "scatter_rdb_allgather"),
        ("bcast", 3, 100, "NTSB"),
        ("alltoall", 2, 3, "basic_linear"),
        ("alltoall", 7, 600_000, "ring"),  # `pair` is for powers of two
        ("allreduce", 3, 100, "rdb"),
        ("allreduce", 64, 1 << 20, "rab_rdb"),
        ("gather", 2, 200_000, "ompi_linear_sync"),
    ],
)
def test_open_mpi_decisions(op: str, size: int, nbytes: int, name: str) -> None:
    assert Selection("ompi").choose(Call(op, 0, size, count=nbytes)) == name


def test_default_selector_defers_to_open_mpi_for_alltoall() -> None:
    call = Call("alltoall", 0, 16, count=1)
    assert Selection().choose(call) == Selection("ompi").choose(call)


def test_overrides_and_simgrid_options() -> None:
    options = {"smpi/coll-selector": "mpich", "smpi/bcast": "NTSL", "smpi/os": "0:1:2"}
    selection = Selection.from_options(options)
    assert selection.selector == "mpich"
    assert selection.choose(Call("bcast", 0, 4, count=1)) == "NTSL"
    assert Selection.from_options(options, "ompi", {"bcast": "flattree"}) == Selection(
        "ompi", {"bcast": "flattree"}
    )
    assert hash(Selection("ompi", {"bcast": "NTSL"})) == hash(Selection("ompi", {"bcast": "NTSL"}))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nonesuch",), "selector nonesuch: no such selector; there are automatic"),
        (("default", {"bcst": "NTSL"}), "no such collective operation; did you mean bcast"),
        (
            ("default", {"bcast": "quick"}),
            "bcast=quick: no such algorithm of bcast; there are NTSL",
        ),
    ],
)
def test_wrong_names(arguments, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Selection(*arguments)


def test_parts_of_a_two_level_name() -> None:
    assert split("two_level:rdb,binomial") == ("two_level", ("rdb", "binomial"))
    nodes = Nodes((0, 0, 1, 1))
    selection = Selection("default", {"bcast": "two_level:flattree,binomial_tree"})
    s = Schedule()
    build(s, Call("bcast", 0, 4, count=8, nodes=nodes, selection=selection))
    assert s.peers[0] == 2  # the other leader first, then the own node
    assert s.peers[-1] == 1


@pytest.mark.parametrize(
    ("selector", "op", "size", "nbytes", "name"),
    [
        ("ompi", "bcast", 16, 1 << 20, "flattree"),
        ("default", "allreduce", 16, 8, "flat"),
        ("ompi5", "bcast", 4, 8, "flattree"),
        ("ompi5", "bcast", 5, 1 << 20, "binomial_tree"),
        ("ompi5", "allreduce", 8, 1 << 20, "rab_rdb"),
        ("ompi5", "allreduce", 8, 1000, "binomial"),
        ("ompi5", "reduce", 4, 1, "binomial"),
        ("mpich4", "allreduce", 8, 1000, "rab_rdb"),
    ],
)
def test_non_blocking_forms(selector: str, op: str, size: int, nbytes: int, name: str) -> None:
    call = Call(op, 0, size, count=nbytes, nonblocking=True)
    assert Selection(selector).choose(call) == name


def test_a_non_blocking_form_may_have_its_own_algorithm() -> None:
    selection = Selection("ompi", {"bcast": "NTSL", "ibcast": "binomial_tree"})
    assert selection.choose(Call("bcast", 0, 4)) == "NTSL"
    assert selection.choose(Call("bcast", 0, 4, nonblocking=True)) == "binomial_tree"
    selection = Selection("ompi", {"bcast": "NTSL"})
    assert selection.choose(Call("bcast", 0, 4, nonblocking=True)) == "NTSL"
    with pytest.raises(UsageError, match="collective operation ibcst: no such"):
        Selection("ompi", {"ibcst": "NTSL"})


def test_layout() -> None:
    layout = NodeLayout((7, 3, 7, 3, 7))
    assert layout.local[2] == (0, 2, 4)
    assert layout.leaders == (0, 1)
    assert layout.leader_index == (0, 1, 0, 1, 0)
    assert not layout.uniform and not layout.blocked and layout.per_node == 1
    blocked = NodeLayout((0, 0, 1, 1))
    assert blocked.uniform and blocked.blocked and blocked.per_node == 2
    assert NodeLayout.of(Nodes((0, 0))) is NodeLayout.of(Nodes((0, 0)))


def test_nodes_are_learned_once() -> None:
    cache = ScheduleCache()
    call = Call("bcast", 0, 4, count=8, nodes=Nodes((0, 0, 1, 1)))
    first, ready = cache.with_ready(call, "SMP_binomial")
    assert ready == {""}
    again = Call("bcast", 0, 4, count=8, nodes=Nodes((0, 0, 1, 1)))
    assert cache.with_ready(again, "SMP_binomial") == (first, {""})
    later = Call("bcast", 0, 4, count=8, nodes=Nodes((0, 0, 1, 1)), ready=frozenset({""}))
    assert len(cache.get(later, "SMP_binomial")) < len(first)


def test_cache_shares_and_forgets() -> None:
    cache = ScheduleCache(max_steps=100)
    calls = [Call("alltoall", rank, 8, count=4) for rank in range(8)]
    schedules = [cache.get(call, "basic_linear") for call in calls]
    assert all(s.codes is schedules[0].codes for s in schedules)
    assert cache.get(calls[3], "basic_linear") is schedules[3]
    cache.get(Call("alltoall", 0, 64, count=4), "basic_linear")
    assert len(cache) == 1
    assert cache.get(calls[3], "basic_linear") is not schedules[3]


def test_calls_by_turns_have_their_own_schedules() -> None:
    cache = ScheduleCache()
    calls = [
        (Call("bcast", 0, 4, count=8), "flattree"),
        (Call("bcast", 0, 4, count=9), "flattree"),
        (Call("bcast", 0, 4, count=8, root=1), "flattree"),
        (Call("bcast", 0, 6, count=8), "flattree"),
        (Call("bcast", 0, 4, count=8), "binomial_tree"),
        (Call("reduce", 0, 4, count=8), "flat_tree"),
        (Call("bcast", 0, 4, count=8, selection=Selection("ompi")), None),
        (Call("bcast", 0, 4, count=8, selection=Selection("mpich")), None),
    ]
    for rank in range(4):
        for call, algorithm in calls:
            own = call._replace(rank=rank)
            alone = Schedule()
            build(alone, own, algorithm)
            for _ in range(2):
                found = cache.get(own, algorithm)
                for column in ("codes", "peers", "sizes", "tags", "amounts"):
                    assert getattr(found, column) == getattr(alone, column), (call, algorithm)
    assert len(cache) == len(calls)


@pytest.mark.parametrize(
    ("op", "algorithm"),
    [("barrier", "ompi_tree"), ("reduce", "binomial"), ("bcast", "binomial_tree")],
)
def test_ranks_with_the_same_place_in_a_tree_share_columns(op: str, algorithm: str) -> None:
    cache = ScheduleCache()
    calls = [Call(op, rank, 256, count=4, type_size=8) for rank in range(256)]
    schedules = [cache.get(call, algorithm) for call in calls]
    for schedule, call in zip(schedules, calls, strict=True):
        alone = Schedule()
        build(alone, call, algorithm)
        for column in ("codes", "peers", "sizes", "tags", "amounts"):
            assert getattr(schedule, column) == getattr(alone, column)
            values = getattr(schedule, column)
            assert [type(value) for value in values] == [
                type(value) for value in getattr(alone, column)
            ]
    # A rank has between 0 and 8 children, and is the root or not.
    for column in ("codes", "sizes", "tags", "amounts"):
        assert len({id(getattr(schedule, column)) for schedule in schedules}) <= 18, column


@given(st.integers(1, 200), st.integers(1, 40), st.data())
def test_trees_span_the_ranks(size: int, fanout: int, data) -> None:
    root = data.draw(st.integers(0, size - 1))
    shapes = {
        "kary": (root, lambda r: trees.kary(r, size, root, fanout)),
        "binomial": (root, lambda r: trees.binomial(r, size, root)),
        "in_order_binomial": (root, lambda r: trees.in_order_binomial(r, size, root)),
        "chains": (root, lambda r: trees.chains(r, size, root, fanout)),
        "in_order_binary": (size - 1, lambda r: trees.in_order_binary(r, size)),
    }
    for shape, (top, tree) in shapes.items():
        parents = {r: tree(r)[0] for r in range(size)}
        children = {r: tree(r)[1] for r in range(size)}
        assert parents[top] == -1, shape
        assert sorted(c for cs in children.values() for c in cs) == sorted(
            r for r in range(size) if r != top
        )
        assert all(parents[c] == r for r, cs in children.items() for c in cs), shape
        seen, level = {top}, [top]
        while level:
            level = [c for r in level for c in children[r]]
            assert not seen & set(level)
            seen.update(level)
        assert len(seen) == size, shape


@given(st.integers(2, 130))
def test_doubling_gives_everybody_every_block(size: int) -> None:
    rounds = [list(doubling_rounds(rank, size)) for rank in range(size)]
    have = [{rank} for rank in range(size)]
    position = [0] * size
    moved = True
    while moved:
        moved = False
        for rank in range(size):
            if position[rank] == len(rounds[rank]):
                continue
            what, peer, mine, theirs = rounds[rank][position[rank]]
            if position[peer] == len(rounds[peer]) or rounds[peer][position[peer]][1] != rank:
                continue
            other = rounds[peer][position[peer]]
            assert (what, other[0]) in {("both", "both"), ("send", "recv"), ("recv", "send")}
            assert other[2] == theirs or what == "send"
            if what in ("both", "send"):
                assert set(range(*mine)) <= have[rank]
            if what in ("both", "recv"):
                assert set(range(*theirs)) <= have[peer]
            gained = set(range(*theirs)) if what != "send" else set()
            given_ = set(range(*mine)) if what != "recv" else set()
            have[rank] |= gained
            have[peer] |= given_
            position[rank] += 1
            position[peer] += 1
            moved = True
    assert all(blocks == set(range(size)) for blocks in have)


@given(st.integers(0, 10**7), st.integers(1, 64), st.integers(0, 1 << 20))
def test_segments_add_up(count: int, type_size: int, segment: int) -> None:
    per_segment = segment_count(segment, type_size, count)
    parts = segments(count, max(1, per_segment)) if count < 10**5 else [count]
    assert sum(parts) == count


@given(st.integers(0, 10**6), st.integers(1, 1000))
def test_blocks_add_up(count: int, parts: int) -> None:
    blocks = blocks_of(count, parts)
    assert sum(blocks) == count and len(blocks) == parts and max(blocks) - min(blocks) <= 1


@given(st.integers(1, 5000))
def test_meshes_hold_all_ranks(size: int) -> None:
    rows, width = mesh2(size)
    assert rows * width == size and rows <= width
    side, depth = mesh3(size)
    assert side * side * depth == size


def test_every_selector_has_a_line() -> None:
    for name in registry.SELECTORS.names():
        assert registry.find_selector(name).line
    for op in registry.COLLECTIVES.names():
        for algorithm in registry.algorithms_of(op).values():
            function = algorithm.build or algorithm.live
            assert algorithm.line and function.__doc__ or op == "reduce_scatter_block"


def blocks_of_docs(language: str) -> list[str]:
    """The code blocks of the page on writing an algorithm, before the section on selectors."""
    text = PAGE.read_text().split("## A selector\n")[0]
    return [part.split("\n```", 1)[0] for part in text.split(f"```{language}\n")[1:]]


PROGRAM = """
import time
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
data = np.arange(1000.0) if comm.rank == 2 else np.zeros(1000)
if comm.rank == 0:
    time.sleep(1)
comm.Bcast(data, 2)
assert (data == np.arange(1000.0)).all()
print(comm.rank, round(MPI.Wtime()), flush=True)
"""


CHECK = """
from definition import Case, violations

found = []
for op, name in (("bcast", "star"), ("bcast", "present_first"), ("reduce", "row")):
    for size in range(1, 12):
        for root in range(size):
            found += violations(Case(op, size, root, 5, in_place=op == "reduce"), name)
print(len(found), "violations", *found[:3])
"""


@pytest.mark.slow
def test_algorithms_of_the_docs_in_another_distribution(tmp_path) -> None:
    star, row, present = blocks_of_docs("python")
    [group] = blocks_of_docs("toml")
    section, line = group.splitlines()
    name, target = (part.strip(' "') for part in line.split("="))
    package = tmp_path / "my_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "star.py").write_text(f"{star}\n\n{row}\n\n{present}\n")
    info = tmp_path / "star-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: star\nVersion: 1.0\n")
    assert section == '[project.entry-points."pysmpi.collectives"]'
    (info / "entry_points.txt").write_text(f"[pysmpi.collectives]\n{name} = {target}\n")
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "check.py").write_text(CHECK)
    path = os.pathsep.join((str(tmp_path), str(Path(__file__).parent)))
    checked = subprocess.run(
        [sys.executable, "check.py"], capture_output=True, text=True, timeout=120,
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert checked.returncode == 0 and checked.stdout == "0 violations\n", checked
    found = {}
    for algorithm in ("star", "present_first"):
        command = [sys.executable, "-m", "pysmpi", "run", "-n", "5", "--compute", "none"]
        done = subprocess.run(
            [*command, "--coll", f"bcast={algorithm}", "program.py"],
            capture_output=True, text=True, timeout=120, cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found[algorithm] = dict(map(int, line.split()) for line in done.stdout.splitlines())
    # Rank 0 is a second late; in the star no rank waits for it, because short sends do not wait.
    assert found["star"] == {0: 1, 1: 0, 2: 0, 3: 0, 4: 0}
    assert found["present_first"] == {0: 1, 1: 0, 2: 1, 3: 0, 4: 0}
