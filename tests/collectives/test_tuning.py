"""Finding the fastest algorithm by trying, and selection files."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pysmpi
from pysmpi.cli.main import status_of
from pysmpi.collectives import drawing, registry
from pysmpi.collectives.call import Call
from pysmpi.collectives.selection import Selection
from pysmpi.collectives.tuning import Tuner, calls_of_all, candidates, schedules_of, selection_file
from pysmpi.collectives.volumes import most_of
from pysmpi.errors import UsageError
from pysmpi.network.models import find
from pysmpi.platform.config import Settings
from pysmpi.platform.loader import load


@pytest.fixture(scope="module")
def tuner() -> Tuner:
    machine = load("cluster")
    hosts = list(machine.hosts)[:16]
    settings = Settings(machine.config, {})
    return Tuner(lambda: find("hybrid").build(machine, hosts, settings), len(hosts))


@pytest.mark.parametrize("op", ["bcast", "allreduce", "alltoall", "reduce_scatter", "scan"])
@pytest.mark.parametrize("count", [1, 50_000])
def test_the_winner_is_the_fastest(tuner: Tuner, op: str, count: int) -> None:
    counts = (count,) * 6 if op == "reduce_scatter" else None
    call = Call(op, 0, 6, count=count, recv_counts=counts, selection=Selection("automatic"))
    everything = dict(tuner.rank(call, everything=True))
    assert set(everything) == set(candidates(call))
    winner = tuner.choose(call)
    assert everything[winner] <= min(everything.values()) * (1 + 1e-8)
    trials = tuner.trials
    assert tuner.choose(call) == winner and tuner.trials == trials


def test_every_rank_gets_the_same_answer(tuner: Tuner) -> None:
    selection = Selection("automatic").tried_on(tuner)
    for op in ("allgatherv", "gatherv", "alltoallv"):
        call = Call(op, 0, 5, count=7, recv_counts=(7, 0, 900, 3, 5), selection=selection)
        names = set()
        for one in calls_of_all(call):
            sent = (one.rank,) * 5 if op == "alltoallv" else None
            names.add(selection.choose(one._replace(send_counts=sent)))
        assert len(names) == 1


def test_operators_that_do_not_commute_keep_the_order(tuner: Tuner) -> None:
    call = Call("reduce", 0, 8, count=100_000, commutative=False)
    assert "scatter_gather" not in candidates(call) and "binomial" in candidates(call)


def work(count: int) -> tuple[float, float]:
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    comm.Barrier()
    start = MPI.Wtime()
    total = np.empty(count)
    comm.Allreduce(np.arange(count, dtype=float), total)
    half = comm.Split(comm.rank % 2)
    half.Bcast(total, half.size - 1)
    assert half.allgather(comm.rank) == list(range(comm.rank % 2, comm.size, 2))
    return MPI.Wtime() - start, total[1]


@pytest.mark.parametrize("options", [{"selector": "automatic"}, {"coll": {"bcast": "automatic"}}])
def test_programs_run_with_it(options: dict) -> None:
    result = pysmpi.run(work, 7, args=(3000,), compute="none", **options)
    assert [total for _, total in result.returns] == [7.0] * 7
    again = pysmpi.run(work, 7, args=(3000,), compute="none", **options)
    assert again.seconds == result.seconds


def test_selection_file(tmp_path) -> None:
    path = tmp_path / "fast.sel"
    path.write_text(
        """
        # on my machine
        """
        "\nallreduce\n    P == 4   <=1K:rdb <1M:rab_rdb else:lr  # for 4\n    else ompi5\n"
        "bcast\n  P < 8   NTSL\n  P <= 16  <8:NTSL else:two_level:NTSL,flattree\n  else  mpich\n"
    )
    selection = Selection(str(path), {"scan": "linear"})
    names = [selection.choose(Call("allreduce", 0, 4, count=n)) for n in (0, 1024, 1025, 1 << 20)]
    assert names == ["rdb", "rdb", "rab_rdb", "lr"]
    assert selection.choose(Call("bcast", 0, 16, count=8)) == "two_level:NTSL,flattree"
    assert selection.choose(Call("scan", 0, 16, count=8)) == "linear"
    assert selection.choose(Call("gather", 0, 16, count=8)) == "default"
    path.write_text("allreduce\n else ring\n")
    assert Selection(str(path)).choose(Call("allreduce", 0, 4, count=1)) == "ring"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1: expected the name of a collective operation, got nothing"),
        ("bcst\n", ":1: expected the name of a collective operation, got 'bcst'"),
        (" else NTSL\n", ":1: expected the name of a collective operation, got 'else NTSL'"),
        ("bcast\n else wrong.sel\n", ":2: bcast=wrong.sel: no such algorithm of bcast"),
        ("bcast\n\n", ":2: expected one that holds for all ranks"),
        ("bcast\n else quick\n", ":2: bcast=quick: no such algorithm of bcast; there are "),
        ("bcast\n P > 3 NTSL\n else NTSL", ":2: expected `P == N`, `P < N`"),
        ("bcast\n P < x NTSL\n else NTSL", ":2: expected a number of ranks"),
        ("bcast\n P < 8 NTSL\n P < 8 NTSL\n else NTSL", ":3: expected more ranks than 7"),
        ("bcast\n else <8k:NTSL else:NTSL", ":2: expected a size such as 64K, got '8k'"),
        ("bcast\n else <8:NTSL <8:NTSL NTSL", ":2: expected greater sizes"),
        ("bcast\n else <8:NTSL", ":2: expected `else:NAME` at the end"),
        ("bcast\n else NTSL <8:NTSL", ":2: expected the entry for"),
        ("bcast\n else NTSL\n P < 3 NTSL", ":3: expected the name"),
        ("bcast\n else NTSL\nbcast\n", ":3: expected one table for an operation"),
    ],
)
def test_wrong_selection_files(tmp_path, text: str, message: str) -> None:
    path = tmp_path / "wrong.sel"
    path.write_text(text)
    with pytest.raises(UsageError) as error:
        Selection(str(path))
    assert str(error.value).startswith(f"{path}{message}")


def test_no_selection_file(tmp_path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        Selection(str(tmp_path / "none.sel"))
    (tmp_path / "binary.sel").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="expected a selection file, got UTF-16"):
        Selection(str(tmp_path / "binary.sel"))


# The first selection loads all selectors, which counts as slow input.
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(st.tuples(st.integers(1, 1 << 24), st.sampled_from(["rdb", "lr", "rab_rdb"])),
                min_size=1, max_size=6, unique_by=lambda pair: pair[0]))  # fmt: skip
def test_what_is_written_is_read(tmp_path_factory, found) -> None:
    path = tmp_path_factory.mktemp("selection") / "it.sel"
    path.write_text(selection_file("x", 12, {"allreduce": sorted(found)}))
    selection = Selection(str(path))
    if all(b >= 4 * a for (a, _), (b, _) in zip(sorted(found), sorted(found)[1:])):
        for size, name in found:
            assert selection.choose(Call("allreduce", 0, 12, count=size)) == name
    assert selection.choose(Call("allreduce", 0, 13, count=1)) in registry.algorithms_of(
        "allreduce"
    )


def test_tune_writes_what_selector_reads(tmp_path, capfd) -> None:
    path = tmp_path / "tuned.sel"
    arguments = ["collectives", "tune", "-n", "5", "--ops", "bcast,barrier,alltoallv"]
    assert status_of([*arguments, "--sizes", "8,64KiB", "-o", str(path)]) == 0
    table = capfd.readouterr().out.splitlines()
    assert len(table) == 5 and table[1].startswith("bcast ")
    result = pysmpi.run(work, 5, args=(10,), selector=str(path), compute="none")
    assert result.returns[0][1] == 5.0
    assert status_of([*arguments, "--json", "--sizes", "8"]) == 0
    rows = json.loads(capfd.readouterr().out)
    for row in rows:
        assert all(other["seconds"] >= row["seconds"] * (1 - 1e-8)
                   for other in row["libraries"].values())  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tune", "-n", "4", "--ops", "bcst"], "--ops: expected some of barrier"),
        (["tune", "-n", "4", "--sizes", "x"], "expected a size"),
        (["tune", "-n", "0"], "expected at least 1"),
        (["draw", "bcast", "quick"], "bcast=quick: no such algorithm of bcast"),
        (["draw", "bcast", "NTSL", "--root", "9"], "--root: expected 0 to 7, got 9"),
        (["draw", "bcast", "NTSL", "-o", "x.gif"], "ends in .svg, .png or .txt"),
        (["--platform", "cluster", "--selector", "ompi"], "expected --selector automatic"),
    ],
)
def test_wrong_usage(capfd, arguments: list[str], message: str) -> None:
    assert status_of(["collectives", *arguments]) == 2
    assert message in capfd.readouterr().err


def test_picture_of_recursive_doubling(capfd) -> None:
    assert status_of(["collectives", "draw", "allreduce", "rdb", "-n", "4"]) == 0
    assert capfd.readouterr().out.splitlines() == [
        "allreduce rdb, 4 ranks, 1 KiB: 2 steps, 8 messages, 8 KiB in all",
        "a rank sends up to 2 KiB, receives up to 2 KiB, combines up to 2 KiB",
        "step 1      1 KiB  0<->1  2<->3",
        "step 2      1 KiB  0<->2  1<->3",
    ]


def test_picture_as_svg(tmp_path) -> None:
    from xml.etree import ElementTree

    path = tmp_path / "tree.svg"
    assert status_of(["collectives", "draw", "bcast", "ompi", "-n", "9", "-o", str(path)]) == 0
    root = ElementTree.parse(path).getroot()
    arrows = [line for line in root.iter() if line.get("marker-end")]
    assert len(arrows) == 8
    [title] = arrows[0]
    assert title.text.endswith(
        ": bytes 0 to 1023 of the receive buffer to bytes 0 to 1023 of the receive buffer"
    )


def test_volumes_count_data_only() -> None:
    """A ring sends less than recursive doubling; signals are no data; moved bytes are counted."""
    most = {}
    for name in ("lr", "rdb"):
        most[name] = most_of(schedules_of(Call("allreduce", 0, 8, count=8000), name, named=True))
    assert most["rdb"].sent == most["rdb"].combined == 3 * 8000
    assert most["lr"].sent == 2 * 7000 and most["lr"].combined == 7000
    call = Call("alltoall", 0, 4, count=10)
    most = most_of(schedules_of(call, "ring_light_barrier", named=True))
    assert (most.sent, most.received, most.combined) == (30, 30, 0)
    bruck = most_of(schedules_of(call, "bruck", named=True))
    assert bruck.sent == 40 and bruck.moved > 80


def test_every_algorithm_can_be_drawn() -> None:
    for op in registry.COLLECTIVES.names():
        if op.startswith("neighbor"):
            continue
        for name in registry.algorithms_of(op):
            counts = (3000,) * 6
            call = Call(op, 0, 6, count=3000, send_counts=counts, recv_counts=counts)
            picture = drawing.trace(name, schedules_of(call, name))
            assert picture.steps > 0, (op, name)
            assert drawing.as_text(picture) and drawing.as_svg(picture)


def test_automatic_is_a_selector() -> None:
    assert Selection("automatic").automatic
    assert not Selection("ompi", {"bcast": "automatic"}).inner().automatic
    assert "automatic" in registry.SELECTORS.names()
