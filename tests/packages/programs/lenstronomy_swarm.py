"""Particle swarm of lenstronomy with its pool of ranks; the images of a lens."""

import numpy
from lenstronomy.LensModel.lens_model import LensModel
from lenstronomy.LensModel.Solver.lens_equation_solver import LensEquationSolver
from lenstronomy.Sampling.Pool.pool import choose_pool
from lenstronomy.Sampling.Samplers.pso import ParticleSwarmOptimizer

lens = LensModel(["SIE"])
TRUE = [1.2, 0.1, -0.05]
SOURCE = 0.05, 0.1
POINTS = numpy.array([[1.0, 0.3], [-0.8, 0.9], [0.1, -1.2]])


def deflections(values):
    theta, e1, e2 = values
    keys = [{"theta_E": theta, "e1": e1, "e2": e2, "center_x": 0.0, "center_y": 0.0}]
    return numpy.array(lens.ray_shooting(POINTS[:, 0], POINTS[:, 1], keys))


OBSERVED = deflections(TRUE)


def likelihood(values):
    return -float(((deflections(values) - OBSERVED) ** 2).sum())


if __name__ == "__main__":
    pool = choose_pool(mpi=True, processes=1, use_dill=True)
    numpy.random.seed(4)
    swarm = ParticleSwarmOptimizer(
        likelihood, low=[0.5, -0.3, -0.3], high=[2.0, 0.3, 0.3], particle_count=20, pool=pool
    )
    best, (likelihoods, positions, velocities) = swarm.optimize(max_iter=15, verbose=False)
    print("best", best, "steps", len(likelihoods), "workers", pool.size)
    keys = [dict(zip(["theta_E", "e1", "e2"], TRUE), center_x=0.0, center_y=0.0)]
    images = LensEquationSolver(lens).image_position_from_source(*SOURCE, keys)
    print("images", sorted(numpy.round(images[0], 6).tolist()))
    pool.close()
