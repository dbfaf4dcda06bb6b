"""Parts of the simulated machine fail or become slow; the report names the part and the date."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pysmpi
from pysmpi.faults.specification import Fault, RandomFaults, parse_fault


def steps() -> list[float]:
    """Ten steps of a second, with a message around the ring in each; the dates of the steps."""
    import time

    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    dates = []
    for _ in range(10):
        time.sleep(1)
        comm.sendrecv(comm.rank, dest=(comm.rank + 1) % comm.size)
        dates.append(MPI.Wtime())
    return dates


def run(main: Any, *faults: str, **options: Any) -> pysmpi.Result:
    chosen = {"nprocs": 4, "compute": "none", "platform": "cluster", **options}
    return pysmpi.run(main, fault=faults, check=False, **chosen)


def test_a_rank_fails(tmp_path: Path) -> None:
    cleaned = tmp_path / "cleaned"

    def main() -> None:
        from mpi4py import MPI

        try:
            steps()
        finally:
            if MPI.COMM_WORLD.rank == 3:
                cleaned.write_text("the process was killed, nobody writes this")

    result = run(main, "rank=3@2.5s")
    assert result.exit_status == 3 and result.error is not None
    lines = result.error.splitlines()
    assert lines[0].startswith("PSM109 part of the machine failed: rank 3 on host ")
    assert "failed at t=2.5 s (simulated), --fault rank=3@2.5s" in lines[0]
    assert any(line.startswith("  rank 3") and "was in sleep" in line for line in lines)
    assert any(line.startswith("  ranks 0-2") and "test_faults.py" in line for line in lines)
    assert [rank["end_seconds"] for rank in result.ranks] == [2.5] * 4
    assert not cleaned.exists()


def test_a_fault_after_the_end_changes_nothing() -> None:
    late, none = run(steps, "rank=1@99s"), run(steps)
    assert late.exit_status == 0 and late.returns == none.returns


def test_a_host_fails() -> None:
    name = run(steps).ranks[0]["host"]
    result = run(steps, f"host={name}@1500ms")
    assert result.exit_status == 3
    assert f"host {name} with ranks 0" in str(result.error)
    assert "at t=1.5 s" in str(result.error)


def links(platform: str, source: int = 0, target: int = 1) -> list[str]:
    from pysmpi.platform.loader import load

    machine = load(platform)
    return [link.name for link in machine.way(machine.hosts[source], machine.hosts[target])]


def transfer() -> float:
    """The time of a large message from rank 0 to rank 1, which begins after two seconds."""
    import time

    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    time.sleep(2)
    begun = MPI.Wtime()
    if comm.rank == 0:
        comm.Send(numpy.zeros(10_000_000), dest=1)
    elif comm.rank == 1:
        comm.Recv(numpy.empty(10_000_000), source=0)
    return MPI.Wtime() - begun


def test_a_slow_link() -> None:
    link = links("graphene")[0]
    plain = run(transfer, platform="graphene", nprocs=2).returns[1]
    slow = run(transfer, f"link={link}@1s:slow=10", platform="graphene", nprocs=2).returns[1]
    slower = run(transfer, f"link={link}@1s:slow=100", platform="graphene", nprocs=2).returns[1]
    assert 5 < slow / plain < 11  # without a fault, more than this link limits the message
    assert 9 < slower / slow < 10.1
    later = run(transfer, f"link={link}@9999s:slow=10", platform="graphene", nprocs=2).returns[1]
    assert later == plain


def test_a_dead_link() -> None:
    link = links("graphene")[0]
    result = run(transfer, f"link={link}@1s", platform="graphene", nprocs=2)
    assert result.exit_status == 3
    assert f"link {link} failed at t=1 s" in str(result.error)
    assert "a message from rank 0 to rank 1 needs it" in str(result.error)


def test_a_slow_host() -> None:
    def main() -> float:
        from mpi4py import MPI

        begun = MPI.Wtime()
        for _ in range(100):
            MPI.COMM_WORLD.Barrier()
        return MPI.Wtime() - begun

    host = run(main).ranks[0]["host"]
    plain = run(main, compute=1e-3).seconds
    slow = run(main, f"host={host}@0s:slow=3", compute=1e-3).seconds
    assert 2.5 < slow / plain < 3.5


def test_random_failures_repeat_with_the_seed() -> None:
    reports = [run(steps, "random:rate=0.2", seed=seed).error for seed in (1, 1, 2, 3, 4)]
    assert reports[0] == reports[1] and len(set(reports)) > 2
    dates = [run(steps, "random:rate=1", seed=seed).seconds for seed in range(30)]
    assert 0.1 < sum(dates) / 30 < 0.6  # the mean is 1 / (4 ranks x 1 failure a second)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rank=7", "expected rank=N@TIME"),
        ("disk=1@1s", "expected rank=N@TIME"),
        ("rank=7@soon", "soon"),
        ("rank=x@1s", "expected the number of a rank, got 'x'"),
        ("host=a@1s:fast", "expected dead, slow=FACTOR or for=TIME"),
        ("host=a@1s:slow=0.5", "with a factor of at least 1"),
        ("rank=1@1s:slow=2", "a rank cannot be slow"),
        ("random:often", "expected random:rate=RATE"),
        ("rank=4@1s", "expected a rank below 4"),
        ("host=nowhere@1s", "no host 'nowhere' in the platform"),
        ("link=nowhere@1s", "no link 'nowhere' in the platform"),
    ],
)
def test_wrong_faults(text: str, message: str) -> None:
    with pytest.raises(pysmpi.UsageError) as caught:
        run(steps, text)
    assert message in str(caught.value) and f"--fault {text}" in str(caught.value)


def test_parts_of_a_fault() -> None:
    assert parse_fault("rank=7@2500ms") == Fault("rank", "7", 2.5, None, "rank=7@2500ms")
    assert parse_fault("link=a@b@1s:dead") == Fault("link", "a@b", 1.0, None, "link=a@b@1s:dead")
    assert parse_fault("random:rate=2") == RandomFaults(2.0, "random:rate=2")
