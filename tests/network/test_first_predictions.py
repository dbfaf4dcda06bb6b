"""Predictions for a newcomer's machine: the given numbers, and the choices of a library.

The machine is four nodes of 32 cores in six lines. Predicted times are compared with closed forms
from the literature, for the algorithms that Open MPI 5 chooses (`coll_tuned_decision_fixed.c`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

import pysmpi

MACHINE = """\
name: lab
clusters:
  - name: lab
    hosts: node-[0-3]
    cores: 32
    network: {bandwidth: 100Gbps, latency: 1.5us}
"""
LATENCY, BANDWIDTH = 1.5e-6, 12.5e9  # between nodes
LOCAL_LATENCY, LOCAL_BANDWIDTH = 300e-9, 10e9  # inside a node, as docs/reference/platform.md states
NODES, CORES = 4, 32
MEMORY = CORES * 4e9  # bytes/s of a node, as the same page states
ENVELOPE = 16  # bytes that travel with each message


PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "platform.md"


def printed(title: str) -> dict[int, tuple[str, str]]:
    """Rows of the table of docs/reference/platform.md: (predicted, given) by bytes."""
    page = PAGE.read_text(encoding="utf-8")
    table = page.partition("<!-- table: first predictions -->")[2].partition("<!-- end")[0]
    found, rows = "", {}
    for line in table.strip().splitlines()[2:]:
        name, nbytes, predicted, given = (cell.strip() for cell in line.strip("|").split("|"))
        found = re.sub(r"`| \(.*\)", "", name) or found
        if found == title:
            rows[int(nbytes.replace(",", ""))] = predicted, given
    assert rows, title
    return rows


def microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} us"


@pytest.fixture
def lab(tmp_path):
    path = tmp_path / "lab.yaml"
    path.write_text(MACHINE)
    assert len(MACHINE.splitlines()) == 6
    return path


def osu(first, last):
    """osu_latency and osu_bw between two ranks: {bytes: (s, bytes/s)} on the first."""
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    found = {}
    if comm.rank not in (first, last):
        return found
    peer = last if comm.rank == first else first
    acknowledgement = numpy.zeros(4, "b")
    for size in [1 << k for k in range(0, 23)]:
        buffer = numpy.zeros(size, "b")
        for turn in range(12):
            if turn == 2:  # the first ones warm up
                begin = MPI.Wtime()
            if comm.rank == first:
                comm.Send(buffer, peer)
                comm.Recv(buffer, peer)
            else:
                comm.Recv(buffer, peer)
                comm.Send(buffer, peer)
        latency = (MPI.Wtime() - begin) / 20
        begin = MPI.Wtime()
        for _ in range(4):
            if comm.rank == first:
                MPI.Request.Waitall([comm.Isend(buffer, peer) for _ in range(64)])
                comm.Recv(acknowledgement, peer)
            else:
                MPI.Request.Waitall([comm.Irecv(buffer, peer) for _ in range(64)])
                comm.Send(acknowledgement, peer)
        found[size] = latency, 4 * 64 * size / (MPI.Wtime() - begin)
    return found


@pytest.mark.parametrize("key", ["network", "link"])
def test_osu_prints_what_was_given_for_the_route(tmp_path, key):
    """`network` describes the way between two hosts; `link` is one of the two links on it."""
    path = tmp_path / "lab.yaml"
    path.write_text(MACHINE.replace("network", key))
    given = LATENCY * (1 if key == "network" else 2)
    result = pysmpi.run(
        osu, 64, args=(0, 63), platform=path, compute="none", cfg={"smpi/wtime": "0"}
    )
    found = result.returns[0]
    assert found[1][0] == pytest.approx(given, rel=0.02)
    for size, (latency, _) in found.items():
        assert latency == pytest.approx(given + size / BANDWIDTH, rel=0.02), size
    largest = max(found)
    assert found[largest][1] == pytest.approx(BANDWIDTH, rel=0.02)
    assert largest / found[largest][0] == pytest.approx(BANDWIDTH, rel=0.02)
    assert (result.model, result.preset, result.selector) == ("hybrid", "neutral", "ompi5")
    if key == "network":
        for size, row in printed("latency").items():
            formula = given + (size + ENVELOPE) / BANDWIDTH
            assert row == (microseconds(found[size][0]), microseconds(formula)), size
        for size, row in printed("bandwidth").items():
            assert row == (f"{found[size][1] / 1e9:.2f} GB/s", f"{BANDWIDTH / 1e9:.2f} GB/s"), size


# Closed forms. A collective is a sequence of rounds; in each, some ranks send a message of the same
# size to others. Hockney: a message of n bytes takes alpha + n beta. Where k messages leave or
# enter a node in the same round they share its port: alpha + k n beta. Inside a node a core copies
# one message at a time, and all messages of a node that pass caches share its memory.


def node(rank: int) -> int:
    """Ranks fill the cores of a node before the next, and begin again when all are taken."""
    return rank // CORES % NODES


def round_time(messages: Iterable[tuple[int, int]], nbytes: float) -> float:
    """Seconds until the last of some messages that are sent at once has arrived."""
    wire = nbytes + ENVELOPE
    out: Counter[int] = Counter()
    into: Counter[int] = Counter()
    copies: Counter[int] = Counter()  # by core
    inside: Counter[int] = Counter()  # by node
    for source, destination in messages:
        if node(source) == node(destination):
            inside[node(source)] += 1
            for rank in (source, destination):
                copies[rank % (NODES * CORES)] += 1
        else:
            out[node(source)] += 1
            into[node(destination)] += 1
    slowest = 0.0
    if copies:
        share = max(copies.values()) if nbytes >= 4096 else 1
        slowest = LOCAL_LATENCY + share * wire / LOCAL_BANDWIDTH
        if nbytes >= 128 << 10:
            slowest = max(slowest, LOCAL_LATENCY + max(inside.values()) * 2 * wire / MEMORY)
    if out:
        share = max(*out.values(), *into.values())
        slowest = max(slowest, LATENCY + share * wire / BANDWIDTH)
    return slowest


def exchanges(ranks: int, distance: int) -> list[tuple[int, int]]:
    return [(rank, rank ^ distance) for rank in range(ranks)]


def recursive_doubling(ranks: int, m: int) -> float:
    """log2 P (alpha + m beta). Thakur, Rabenseifner and Gropp 2005, section 4.5."""
    steps = range(int(math.log2(ranks)))
    return sum(round_time(exchanges(ranks, 1 << k), m) for k in steps)


def rabenseifner(ranks: int, m: int) -> float:
    """2 log2 P alpha + 2 (P-1)/P m beta, nearest partners first. Rabenseifner 2004."""
    steps = range(int(math.log2(ranks)))
    return 2 * sum(round_time(exchanges(ranks, 1 << k), m / (2 << k)) for k in steps)


def reduce_and_broadcast(ranks: int, m: int) -> float:
    """A binomial tree up and a 4-nomial tree down: (log2 P + log4 P) (alpha + m beta).

    Pjesivac-Grbovic et al. 2007, table 3, without segments.
    """
    up = down = 0.0
    for k in range(int(math.log2(ranks))):
        up += round_time([(v, v ^ 1 << k) for v in range(1 << k, ranks, 2 << k)], m)
    span = ranks
    while span > 1:
        span //= 4
        starts = range(0, ranks, 4 * span)
        down += round_time([(v, v + i * span) for v in starts for i in (1, 2, 3)], m)
    return up + down


def open_mpi(ranks: int, m: int) -> float:
    """Open MPI 5's choice for Allreduce on 64 and 1,024 ranks."""
    if ranks == 64:
        return (recursive_doubling if m < 256 << 10 else rabenseifner)(ranks, m)
    if m < 2048:
        return reduce_and_broadcast(ranks, m)
    return (recursive_doubling if m < 16 << 10 else rabenseifner)(ranks, m)


def allreduce(sizes):
    """Seconds from the common begin of each Allreduce to its end on this rank."""
    import time

    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    took = []
    for number, size in enumerate(sizes, 1):
        mine, total = numpy.empty(size, "b"), numpy.empty(size, "b")
        time.sleep(number - MPI.Wtime())
        begin = MPI.Wtime()
        comm.Allreduce(mine, total)
        took.append(MPI.Wtime() - begin)
    return took


@pytest.mark.parametrize("ranks", [64, 1024])
def test_allreduce_takes_what_open_mpi_s_choice_takes(lab, ranks):
    sizes = [8, 64, 512, 1024, 4096, 16 << 10, 64 << 10, 256 << 10, 1 << 20]
    result = pysmpi.run(allreduce, ranks, args=(sizes,), platform=lab, compute="none", data="none")
    assert result.selector == "ompi5"
    rows = printed(f"Allreduce, {ranks:,} ranks")
    assert set(rows) < set(sizes)
    for i, size in enumerate(sizes):
        took = max(times[i] for times in result.returns)
        assert took == pytest.approx(open_mpi(ranks, size), rel=0.1), size
        if size in rows:
            assert rows[size] == (microseconds(took), microseconds(open_mpi(ranks, size))), size
