"""SimGrid's model of InfiniBand, against times of SMPI 3.32 and against closed forms."""

from __future__ import annotations

import pytest

import pysmpi
from pysmpi.errors import UsageError

MACHINE = """\
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="flat" prefix="n-" suffix="" radical="0-7" speed="3.542Gf" bw="125MBps" lat="24us"
           sharing_policy="SPLITDUPLEX" limiter_link="187.5MBps"/>
</platform>
"""

# Pairs of sender and receiver whose messages begin together.
PATTERNS = {
    "one": [(0, 1)],
    "out": [(0, 1), (0, 2), (0, 3)],
    "into": [(0, 3), (1, 3), (2, 3)],
    "crowded": [(0, 1), (0, 1), (0, 2), (2, 1), (3, 1)],
    "chain": [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)],
    "all": [(i, j) for i in range(4) for j in range(4) if i != j],
}

# Seconds of `smpirun --cfg=network/model:IB`: penalties, pattern, bytes, each rank's time between
# the barrier and the end of its Waitall.
USUAL, HEAVY = "0.965;0.925;1.35", "1.5;1.7;2.1"
SMPI = [
    (USUAL, "one", 1000000, [0.00916056543, 0.00906338842, 0.0, 0.0]),
    (USUAL, "out", 1000000, [0.0261695567, 0.0260723797, 0.0260723797, 0.0260723797]),
    (USUAL, "into", 1000000, [0.0261695567, 0.0260723797, 0.0260723797, 0.0260723797]),
    (USUAL, "crowded", 1000000, [0.0375051335, 0.0374079565, 0.0324188595, 0.026543605]),
    (USUAL, "chain", 1000000, [0.0185155106, 0.0184183336, 0.0184183336, 0.0184183336]),
    (USUAL, "all", 1000000, [0.0363749514, 0.0362777744, 0.0362777744, 0.0362777744]),
    (HEAVY, "one", 1000, [0.0, 0.000117550263, 0.0, 0.0]),
    (HEAVY, "one", 1000000, [0.00916089643, 0.00906338842, 0.0, 0.0]),
    (HEAVY, "out", 1000, [0.0, 0.000214826025, 0.000214826025, 0.000214826025]),
    (HEAVY, "out", 1000000, [0.0440293285, 0.0439318204, 0.0439318204, 0.0439318204]),
    (HEAVY, "into", 1000, [0.0, 0.0, 0.0, 0.000202332438]),
    (HEAVY, "into", 1000000, [0.0389266311, 0.0388291231, 0.0388291231, 0.0388291231]),
    (HEAVY, "crowded", 1000, [0.0, 0.000348158813, 0.000348158813, 0.0]),
    (HEAVY, "crowded", 1000000, [0.0917395489, 0.0916420409, 0.0916420409, 0.0388291231]),
    (HEAVY, "chain", 1000, [0.000220789599, 0.00017442215, 0.00017442215, 0.00017442215]),
    (HEAVY, "chain", 1000000, [0.0295716859, 0.0294741779, 0.0294741779, 0.0294741779]),
    (HEAVY, "all", 1000, [0.00044566683, 0.000348158813, 0.000348158813, 0.000348158813]),
    (HEAVY, "all", 1000000, [0.0917395489, 0.0916420409, 0.0916420409, 0.0916420409]),
]


def exchange(pairs, nbytes):
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    requests = []
    comm.Barrier()
    begin = MPI.Wtime()
    for source, destination in pairs:
        if comm.rank == source:
            requests.append(comm.Isend([numpy.zeros(nbytes, "b"), MPI.BYTE], destination))
        if comm.rank == destination:
            requests.append(comm.Irecv([numpy.zeros(nbytes, "b"), MPI.BYTE], source))
    MPI.Request.Waitall(requests)
    return MPI.Wtime() - begin


def times(platform, pairs, nbytes, **cfg):
    result = pysmpi.run(
        exchange, 4, args=(pairs, nbytes), platform=platform, map_by="node", compute="none",
        selector="default", cfg={"smpi/wtime": "0", "network/model": "IB", **cfg},
    )  # fmt: skip
    return result.returns


@pytest.fixture(scope="module")
def flat(tmp_path_factory):
    path = tmp_path_factory.mktemp("machine") / "flat.xml"
    path.write_text(MACHINE)
    return path


@pytest.mark.parametrize(("penalties", "pattern", "nbytes", "expected"), SMPI)
def test_times_of_smpi(flat, penalties, pattern, nbytes, expected):
    cfg = {"smpi/IB-penalty-factors": penalties}
    # Short messages meet the last messages of the barrier, and two rows differ by up to 0.9 %.
    close = 1e-2 if nbytes < 10_000 else 1e-8
    assert times(flat, PATTERNS[pattern], nbytes, **cfg) == pytest.approx(expected, rel=close)


def test_a_bound_rises_when_others_have_ended(tmp_path):
    """Two messages leave a host; when the short one has ended, the long one has all bandwidth.

    While there are two, each has 1 / (2 * 2) of the bandwidth.
    """
    path = tmp_path / "two.yaml"
    path.write_text(
        "name: two\n"
        "clusters:\n"
        "  - {name: two, hosts: 'n[0-3]', network: {bandwidth: 100MBps, latency: 1us}}\n"
    )

    def main():
        import numpy
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        if comm.rank == 0:
            sizes = 10_000_000, 1_000_000
            MPI.Request.Waitall(
                [comm.Isend([numpy.zeros(n, "b"), MPI.BYTE], i + 1) for i, n in enumerate(sizes)]
            )
        elif comm.rank < 3:
            comm.Recv([numpy.zeros(10_000_000, "b"), MPI.BYTE])
        return MPI.Wtime()

    cfg = {
        "network/model": "IB", "smpi/IB-penalty-factors": "1;2;1", "smpi/wtime": "0",
        "network/latency-factor": "1", "network/bandwidth-factor": "1", "smpi/lat-factor": "1",
        "smpi/bw-factor": "1", "network/crosstraffic": "no",
    }  # fmt: skip
    result = pysmpi.run(main, 4, platform=path, map_by="node", compute="none", cfg=cfg)
    short = 1_000_016 / 25e6
    long = short + (10_000_016 - 1_000_016) / 100e6
    assert result.returns[2] == pytest.approx(short, rel=1e-4)
    assert result.returns[1] == pytest.approx(long, rel=1e-4)


@pytest.mark.parametrize("text", ["1;2", "0;1;1", "a;b;c", "1;2;inf"])
def test_wrong_penalties(flat, text):
    with pytest.raises(UsageError, match="expected three positive numbers such as 0.965;0.925;1.3"):
        times(flat, [], 1, **{"smpi/IB-penalty-factors": text})
