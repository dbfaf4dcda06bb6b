"""Network cards: all ranks of a host together send messages at the measured rate."""

from __future__ import annotations

from pathlib import Path

import pytest

import pysmpi
from pysmpi.network.measured import load
from pysmpi.replay import Replay


def many(pairs: int, sizes: list[int]) -> list[float]:
    """Messages a second of all pairs between two nodes by size, as osu_mbw_mr counts them."""
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    window, rates = 64, []
    for size in sizes:
        buffer = numpy.zeros(size, "b")
        comm.Barrier()
        begin = MPI.Wtime()
        for _ in range(4):
            if comm.rank < pairs:
                MPI.Request.Waitall([comm.Isend(buffer, comm.rank + pairs) for _ in range(window)])
                comm.Recv(buffer[:1], comm.rank + pairs)
            else:
                peer = comm.rank - pairs
                MPI.Request.Waitall([comm.Irecv(buffer, peer) for _ in range(window)])
                comm.Send(buffer[:1], peer)
        passed = comm.allreduce(MPI.Wtime() - begin, op=MPI.MAX)
        rates.append(4 * window * pairs / passed)
    return rates


def machine(folder: Path, preset: str, latency: str, bandwidth: str) -> Path:
    file = folder / "machine.yaml"
    file.write_text(
        f"name: two\npreset: {preset}\nclusters:\n  - name: two\n    hosts: two-[0-1]\n"
        f"    cores: 32\n    network: {{bandwidth: {bandwidth}, latency: {latency}}}\n"
    )
    return file


@pytest.mark.parametrize(
    ("preset", "latency", "bandwidth"),
    [
        ("infiniband-edr", "0.98us", "12.32GBps"),
        ("ethernet-100g-roce", "1.45us", "5.785GBps"),
        ("ethernet-25g-roce", "1.38us", "3.06GBps"),
    ],
)
def test_full_nodes_send_at_the_measured_rate(
    preset: str, latency: str, bandwidth: str, tmp_path: Path
) -> None:
    measured = load(preset).pairs
    assert measured is not None
    file = machine(tmp_path, preset, latency, bandwidth)
    sizes = [1, 64, 512, 4096]
    options = {"platform": file, "compute": "none", "data": "none", "cfg": {"smpi/wtime": "0"}}
    full = pysmpi.run(many, 64, args=(32, sizes), **options).returns[0]
    for size, rate in zip(sizes, full, strict=True):
        assert rate == pytest.approx(measured.at(size), rel=0.25), size
    # One pair is not slowed down.
    (alone,) = pysmpi.run(many, 2, args=(1, [1]), map_by="node", **options).returns[0]
    assert alone < full[0] / 4


def reductions(nbytes: int) -> float:
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    data = numpy.zeros(nbytes, "b")
    comm.Barrier()
    begin = MPI.Wtime()
    comm.Allreduce(data, data.copy())
    return MPI.Wtime() - begin


def test_waits_and_reductions_take_time_with_measured_presets_only(tmp_path: Path) -> None:
    def seconds(nbytes: int, **cfg: str) -> float:
        result = pysmpi.run(
            reductions, 8, args=(nbytes,), platform=file, map_by="node", compute="none",
            coll={"allreduce": "rdb"}, cfg={"smpi/wtime": "0", **cfg},
        )  # fmt: skip
        return max(result.returns)

    file = machine(tmp_path, "infiniband-edr", "1us", "12GBps")
    # Three exchanges with a wait each.
    steps = seconds(8) - seconds(8, **{"network/step-overhead": "0s"})
    assert steps == pytest.approx(3 * 4.1e-7, rel=1e-3)
    # Three combinations of 4 KiB, which move three bytes each.
    combined = seconds(4096) - seconds(4096, **{"memory/core-bandwidth": "1e15"})
    assert combined == pytest.approx(3 * 3 * 4096 / 12e9, rel=0.05)
    file = machine(tmp_path, "neutral", "1us", "12GBps")
    assert seconds(8) == seconds(8, **{"network/step-overhead": "1ms"})
    assert seconds(4096) == seconds(4096, **{"memory/core-bandwidth": "1e9"})


def test_recordings_of_such_a_run_replay_in_its_time(tmp_path: Path) -> None:
    file = machine(tmp_path, "infiniband-edr", "1us", "12GBps")
    trace = tmp_path / "run.jsonl"
    options = {"platform": file, "cfg": {"smpi/wtime": "0"}}
    run = pysmpi.run(reductions, 64, args=(1024,), compute="none", trace=trace, **options)
    replayed = Replay([(trace, 0.0)], **options).run().seconds
    assert replayed == pytest.approx(run.seconds, rel=1e-6)
