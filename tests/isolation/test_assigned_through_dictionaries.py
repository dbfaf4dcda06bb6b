"""Attributes that ranks assign to shared modules, and then change in the module's dictionary."""

from __future__ import annotations

import pysmpi

PROGRAM = """
import wave
from mpi4py import MPI

world = MPI.COMM_WORLD
seen = []
if world.rank == 0:
    wave.made_up = 1
    world.Barrier()
    seen.append(wave.made_up)
    vars(wave)["made_up"] = 2
    world.Barrier()
    seen.append(wave.made_up)
    del vars(wave)["made_up"]
    world.Barrier()
else:
    for _ in range(3):
        world.Barrier()
        seen.append(hasattr(wave, "made_up"))
world.Barrier()
print(world.rank, seen, hasattr(wave, "made_up"))
"""


def test_a_value_that_is_changed_in_the_dictionary_stays_the_ranks_own(write, capfd):
    result = pysmpi.run(write("program.py", PROGRAM), 2, compute="none")
    assert result.error is None
    lines = sorted(capfd.readouterr().out.splitlines())
    assert lines == ["0 [1, 2] False", "1 [False, False, False] False"]
