"""Observations of litebird_sim: the time and the detectors are divided among the ranks."""

import litebird_sim as lbs
import numpy as np

comm = lbs.MPI_COMM_WORLD
sim = lbs.Simulation(
    base_path="out",
    start_time=0.0,
    duration_s=120.0,
    random_seed=12,
    mpi_comm=comm,
    imo=lbs.Imo(flatfile_location=lbs.PTEP_IMO_LOCATION),
)
detectors = [
    lbs.DetectorInfo(name=f"det_{n}", sampling_rate_hz=10.0, net_ukrts=5.0 + n) for n in range(2)
]
sim.create_observations(detectors=detectors, n_blocks_det=2, n_blocks_time=comm.size // 2,
                        split_list_over_processes=False)  # fmt: skip
for observation in sim.observations:
    shape = observation.tod.shape
    observation.tod[:] = np.arange(shape[1]) + 100 * comm.rank
    print("rank", comm.rank, shape, observation.name.tolist(), float(observation.tod.sum()))
    print("start", comm.rank, round(float(observation.start_time), 6))
total = comm.allreduce(sum(float(one.tod.sum()) for one in sim.observations))
print("total", comm.rank, total, lbs.MPI_ENABLED)
