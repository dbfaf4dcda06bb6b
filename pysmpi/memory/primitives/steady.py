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
# Chains of up to so many states are solved as dense systems, without scipy.
DENSE = 2_000


def steady_state(chain: Chain) -> NDArray[np.float64]:
    """The steady-state probability of each state: the solution of pi Q = 0.

    Transient states have probability 0. Raises UsageError if the chain has more than one final
    class, because the steady state then depends on chance, or if scipy is missing for a large
    chain.
    """
    if chain.states <= DENSE:
        return _dense(chain)
    sparse, linalg, graph = _scipy()
    size = chain.states
    flow = sparse.coo_matrix((chain.rate, (chain.target, chain.source)), shape=(size, size))
    flow = flow.tocsc()
    count, component = graph.connected_components(flow.T, connection="strong")
    members = _final(chain, count, component)
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


def _final(chain: Chain, count: int, component: NDArray[Any]) -> NDArray[np.intp]:
    """The states of the one class that a chain does not leave."""
    leaves = np.zeros(count, bool)
    leaves[component[chain.source[component[chain.source] != component[chain.target]]]] = True
    final = np.flatnonzero(~leaves)
    if len(final) != 1:
        raise UsageError(
            f"expected a program that comes back to its beginning, got one that can end in "
            f"{len(final)} different places"
        )
    return np.flatnonzero(component == final[0])


def _dense(chain: Chain) -> NDArray[np.float64]:
    """The steady state of a small chain, with numpy alone."""
    size = chain.states
    members = _final(chain, *strong_components(chain))
    probability = np.zeros(size)
    if len(members) == 1:
        probability[members] = 1.0
        return probability
    flow = np.zeros((size, size))
    np.add.at(flow, (chain.target, chain.source), chain.rate)
    flow[np.diag_indices(size)] -= np.bincount(chain.source, chain.rate, size)
    inside = flow[np.ix_(members, members)]
    rest = np.linalg.solve(inside[1:, 1:], -inside[1:, 0])
    solution = np.concatenate([[1.0], rest])
    probability[members] = solution / solution.sum()
    return probability


def strong_components(chain: Chain) -> tuple[int, NDArray[np.intp]]:
    """The number of strongly connected components of a chain, and that of each state (Tarjan)."""
    size = chain.states
    following: list[list[int]] = [[] for _ in range(size)]
    for source, target in zip(chain.source.tolist(), chain.target.tolist()):
        following[source].append(target)
    component = np.full(size, -1, np.intp)
    order, low = [-1] * size, [0] * size
    path: list[int] = []
    count = number = 0
    for root in range(size):
        if order[root] >= 0:
            continue
        order[root] = low[root] = number
        number += 1
        path.append(root)
        work = [(root, iter(following[root]))]
        while work:
            state, rest = work[-1]
            for target in rest:
                if order[target] < 0:
                    order[target] = low[target] = number
                    number += 1
                    path.append(target)
                    work.append((target, iter(following[target])))
                    break
                if component[target] < 0:
                    low[state] = min(low[state], order[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[state])
                if low[state] == order[state]:
                    while True:
                        member = path.pop()
                        component[member] = count
                        if member == state:
                            break
                    count += 1
    return count, component


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
