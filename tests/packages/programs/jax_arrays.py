"""JAX on the CPU: compiled, differentiated and vectorised functions; arrays through MPI."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
jax.config.update("jax_platforms", "cpu")


@jax.jit
def energy(positions, charge):
    difference = positions[:, None] - positions[None]
    distance = jnp.sqrt((difference**2).sum(-1) + jnp.eye(len(positions)))
    return charge * jnp.triu(1 / distance, 1).sum()


key = jax.random.fold_in(jax.random.PRNGKey(3), comm.rank)
positions = jax.random.normal(key, (12, 3))
value, force = jax.value_and_grad(energy)(positions, 1.0 + comm.rank)
print(comm.rank, float(value), float(jnp.abs(force).sum()))
total = np.empty(force.shape, np.float32)
comm.Allreduce(np.asarray(force), total)
print(comm.rank, float(np.abs(total).sum()))
print(comm.rank, np.asarray(jax.vmap(lambda c: energy(positions, c))(jnp.arange(3.0))).tolist())


def step(carry, x):
    return carry * 0.5 + x, carry


last, path = jax.lax.scan(step, float(comm.rank), jnp.arange(6.0))
print(comm.rank, float(last), path.tolist())
hessian = jax.hessian(lambda v: jnp.sin(v).prod())(jnp.array([0.3, 0.7]) * (comm.rank + 1))
print(comm.rank, hessian.ravel().tolist(), [type(one).__name__ for one in jax.devices()])
others = comm.allgather({"rank": comm.rank, "last": np.asarray(last)})
tree = jax.tree_util.tree_map(lambda *xs: float(sum(xs)), *others)
print(comm.rank, tree, jax.make_jaxpr(lambda x: x * 2 + 1)(1.0).eqns.__len__())
