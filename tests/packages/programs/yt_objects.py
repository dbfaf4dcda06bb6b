"""A grid of densities: projections, slices and loops whose turns are taken by the ranks."""

from __future__ import annotations

import numpy as np
import yt

yt.enable_parallelism()
yt.set_log_level(50)
generator = np.random.RandomState(4)
data = {("gas", "density"): (generator.random_sample((32, 32, 32)), "g/cm**3")}
ds = yt.load_uniform_grid(data, (32, 32, 32), length_unit="Mpc", nprocs=8)
extrema = ds.all_data().quantities.extrema(("gas", "density"))
storage: dict[int, object] = {}
for store, radius in yt.parallel_objects([0.1, 0.2, 0.3, 0.4], 0, storage=storage):
    sphere = ds.sphere("c", (radius, "code_length"))
    store.result = float(sphere.quantities.total_quantity(("gas", "cell_volume")).to("Mpc**3"))
print("rank", yt.communication_system.communicators[-1].rank, [float(one) for one in extrema])
if yt.is_root():
    print(sorted(storage.items()))
