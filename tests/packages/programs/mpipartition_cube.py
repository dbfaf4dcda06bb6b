"""Particles of a cube, given to the ranks that own their place, copies at the faces; 8 ranks."""

from __future__ import annotations

import numpy as np
from mpipartition import Partition, distribute, overload

partition = Partition()
generator = np.random.default_rng(partition.rank)
particles = {axis: generator.uniform(0, 1, 1000) for axis in "xyz"}
particles["id"] = np.arange(1000) + 1000 * partition.rank
owned = distribute(partition, 1.0, particles, ("x", "y", "z"))
ghosts = overload(partition, 1.0, owned, 0.05, ("x", "y", "z"))
low, extent = np.array(partition.origin), np.array(partition.extent)
for axis, name in enumerate("xyz"):
    assert np.all((owned[name] >= low[axis]) & (owned[name] < low[axis] + extent[axis]))
print(partition.rank, partition.coordinates, partition.decomposition, len(owned["x"]),
      int(owned["id"].sum()), len(ghosts["x"]), int(ghosts["id"].sum()))  # fmt: skip
