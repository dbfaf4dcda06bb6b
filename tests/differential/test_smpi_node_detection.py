"""Libraries with two-level algorithms find the nodes of a communicator once, as in SMPI."""

from __future__ import annotations

import pytest

import pysmpi
from pysmpi.replay import Replay

PLATFORM = """\
<platform version="4.1"><zone id="world" routing="Full">
<cluster id="c" prefix="c-" suffix="" radical="0-15" speed="1Gf" core="4" bw="1.25GBps" lat="10us"
 loopback_bw="5GBps" loopback_lat="200ns"/>
</zone></platform>
"""
HOSTS = "c-0\nc-0\nc-1\nc-1\nc-2\nc-2\n"

# Of SMPI 3.32, six ranks on three hosts: microseconds of rank 0 in the first Allreduce of ten
# integers on a communicator of Split, on one of Dup, and on COMM_WORLD.
SMPI = {
    "mpich": (121.475, 121.475, 445.737),
    "mvapich2": (123.513, 123.513, 447.775),
    "impi": (81.604, 81.604, 405.865),
    "ompi": (81.604, 81.604, 81.604),
}


def main():
    import time

    import numpy
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    found = []
    send, receive = numpy.zeros(10, "i"), numpy.zeros(10, "i")
    for date, comm in enumerate((world.Split(0), world.Dup(), world), 1):
        time.sleep(date - MPI.Wtime())
        comm.Allreduce(send, receive)
        found.append((MPI.Wtime() - date) * 1e6)
    return found


@pytest.mark.parametrize("selector", SMPI)
def test_nodes_are_found_once(tmp_path, selector):
    (tmp_path / "p.xml").write_text(PLATFORM)
    (tmp_path / "hosts").write_text(HOSTS)
    run = pysmpi.run(
        main, 6, platform=tmp_path / "p.xml", hostfile=tmp_path / "hosts", compute="none",
        cfg={"smpi/wtime": "0"}, selector=selector,
    )  # fmt: skip
    assert run.returns[0] == pytest.approx(SMPI[selector], abs=0.02)


def test_a_replay_finds_them_once(tmp_path):
    (tmp_path / "p.xml").write_text(PLATFORM)
    path = tmp_path / "run.jsonl"
    run = pysmpi.run(
        main, 6, platform=tmp_path / "p.xml", compute="none", selector="mpich", trace=path
    )
    assert Replay([(path, 0.0)]).run().seconds == pytest.approx(run.seconds, rel=1e-12)
