"""Alltoall on two nodes with 32 ranks each, against published tables of osu_alltoall.

Source: github.com/ukri-excalibur/excalibur-tests, output/alaska and output/csd3 (2020).
"""

from __future__ import annotations

from pathlib import Path

import pytest

import pysmpi

# By preset: bandwidth and one-way time as osu_bw and osu_latency print them, and microseconds of
# osu_alltoall by bytes.
MACHINES: dict[str, tuple[str, str, dict[int, float]]] = {
    "ethernet-25g-roce": (
        "3.06GBps",
        "1.38us",
        {4096: 1463.32, 16384: 5978.16, 65536: 24137.69, 131072: 48114.88},
    ),  # Alaska, 25 Gb/s RoCE, Open MPI 4.0.3
    "infiniband-edr": (
        "12.3GBps",
        "0.98us",
        {4096: 434.83, 16384: 1587.16, 65536: 6689.21, 131072: 12677.33},
    ),  # CSD3 Cascade Lake, 100 Gb/s InfiniBand, Open MPI 3.1.6
    "ethernet-100g-roce": (
        "5.78GBps",
        "1.45us",
        {4096: 894.86, 16384: 3194.7, 65536: 12625.51, 131072: 25104.51},
    ),  # CSD3 Cascade Lake, 50 Gb/s RoCE, Open MPI 3.1.6
}


def alltoall(sizes):
    """Seconds of an Alltoall of each size, after one that warms up."""
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    times = []
    for size in sizes:
        send, receive = numpy.zeros((2, size * comm.size), "b")
        comm.Barrier()
        begin = MPI.Wtime()
        comm.Alltoall(send, receive)
        times.append(MPI.Wtime() - begin)
    return times


@pytest.mark.parametrize("preset", MACHINES)
def test_alltoall_is_within_a_quarter_of_the_published_times(preset: str, tmp_path: Path) -> None:
    bandwidth, latency, published = MACHINES[preset]
    file = tmp_path / "machine.yaml"
    file.write_text(
        f"name: two\npreset: {preset}\nclusters:\n  - name: two\n    hosts: two-[0-1]\n"
        f"    cores: 32\n    sockets: 2\n"
        f"    network: {{bandwidth: {bandwidth}, latency: {latency}}}\n"
    )
    result = pysmpi.run(
        alltoall, 64, args=(list(published),), platform=file, compute="none", data="none",
        cfg={"smpi/wtime": "0"},
    )  # fmt: skip
    errors = []
    for i, microseconds in enumerate(published.values()):
        taken = max(times[i] for times in result.returns)
        errors.append(taken * 1e6 / microseconds - 1)
    assert max(map(abs, errors)) <= 0.25, errors
