"""Cores count the ranks that live on them, and lower layers can end a run."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import pysmpi
from pysmpi.errors import UsageError
from pysmpi.isolation.loading.opened_mpi import END_RUN
from pysmpi.mpi import MPI
from pysmpi.mpi.base.ranks import current

ONE_CORE = """\
name: one
hosts: [{name: a, speed: 1Gf, cores: 1}]
"""


def residents() -> tuple[int, int]:
    """Those of the rank's core, while all live and when rank 0 is the only one."""
    core = current().process.core
    MPI.COMM_WORLD.Barrier()
    first = core.residents
    MPI.COMM_WORLD.Barrier()
    if MPI.COMM_WORLD.rank == 0:
        time.sleep(1.0)
    return first, core.residents


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_core_counts_its_ranks(tmp_path: Path, ranks: int) -> None:
    path = tmp_path / "one.yaml"
    path.write_text(ONE_CORE)
    result = pysmpi.run(residents, ranks, platform=path, compute="none")
    assert result.returns[0] == (ranks, 1)


def refuse() -> None:
    if MPI.COMM_WORLD.rank == 1:
        end = END_RUN.peek(current().universe)
        assert end is not None
        end(UsageError("this cannot be simulated"))
        end(UsageError("nor can this"))
    MPI.COMM_WORLD.Barrier()
    MPI.COMM_WORLD.recv()


def test_a_refusal_ends_the_run() -> None:
    """With the first error; no rank goes on, and none is said to wait."""
    with pytest.raises(pysmpi.ProgramError) as caught:
        pysmpi.run(refuse, 3, compute="none")
    assert str(caught.value) == "pysmpi: error: this cannot be simulated"
    assert caught.value.result.exit_status == 2
