"""The steady state of a chain: the probability of each state, and the rate of each access."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pysmpi.errors import UsageError
from pysmpi.memory.primitives.chain import NO_LABEL, Chain
from pysmpi.python.extras import lacking

# Chains of more states than this are solved by iteration.
FACTORED = 20_000


def steady_state(chain: Chain) -> NDArray[np.float64]:
    """The steady-state probability of each state: the solution of pi Q = 0.

    Transient states have probability 0. Raises UsageError if the chain has more than one final
    class, because the steady state then depends on chance, or if scipy is missing.
    """
    sparse, linalg, graph = _scipy()
    size = chain.states
    flow = sparse.coo_matrix((chain.rate, (chain.target, chain.source)), shape=(size, size))
    flow = flow.tocsc()
    count, component = graph.connected_components(flow.T, connection="strong")
    leaves = np.zeros(count, bool)
    leaves[component[chain.source[component[chain.source] != component[chain.target]]]] = True
    final = np.flatnonzero(~leaves)
    if len(final) != 1:
        raise UsageError(
            f"expected a program that comes back to its beginning, got one that can end in "
            f"{len(final)} different places"
        )
    members = np.flatnonzero(component == final[0])
    out = np.bincount(chain.source, chain.rate, size)
    inside = (flow - sparse.diags(out)).tocsc()[members][:, members].tocsc()
    probability = np.zeros(size)
    if len(members) == 1:
        probability[members] = 1.0
        return probability
    # The equations determine pi up to a factor: fix its first entry, drop the first equation.
    right = -inside[1:, 0].toarray().ravel()
    rest = _solve(sparse, linalg, inside[1:, 1:].tocsc(), right)
    solution = np.concatenate([[1.0], rest])
    probability[members] = solution / solution.sum()
    return probability


def _solve(
    sparse: Any, linalg: Any, matrix: Any, right: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Solve a sparse system: by LU, or by GMRES if LU would fill memory."""
    if len(right) > FACTORED:
        # Columns are scaled to a diagonal of -1: rates differ by orders of magnitude.
        scale = sparse.diags(-1.0 / matrix.diagonal())
        scaled = (matrix @ scale).tocsc()
        approximate = linalg.spilu(scaled, drop_tol=1e-4, fill_factor=10)
        preconditioner = linalg.LinearOperator(scaled.shape, approximate.solve)
        found, failed = linalg.gmres(
            scaled, right, M=preconditioner, rtol=1e-12, restart=50, maxiter=40
        )
        if not failed:
            return np.asarray(scale @ found, np.float64)
    return np.asarray(linalg.splu(matrix).solve(right), np.float64)


def throughputs(chain: Chain, probability: NDArray[np.float64], labels: int) -> NDArray[np.float64]:
    """The rate (1/s) of each label, 0 to `labels` - 1, in the steady state."""
    labelled = chain.label != NO_LABEL
    weight = probability[chain.source[labelled]] * chain.rate[labelled]
    return np.asarray(np.bincount(chain.label[labelled], weight, labels), np.float64)


def _scipy() -> tuple[Any, Any, Any]:
    try:
        from scipy import sparse  # type: ignore[import-untyped]
        from scipy.sparse import csgraph, linalg  # type: ignore[import-untyped]
    except ImportError:
        raise lacking("solving a Markov chain", "memory", "or choose the simulation only") from None
    return sparse, linalg, csgraph
