"""The ping-pong between two cores, of one line and of several, and fits to measured ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pysmpi.memory.lines.costs import LineCosts, MultiLine


def single_line(
    costs: LineCosts, send: str = "exclusive", receive: str = "exclusive", *,
    simplified: bool = True, overhead: float = 0.0,
) -> float:  # fmt: skip
    """T_1: seconds to pass one line (equation 1), R_L + 2 R_R + O in the simplified model.

    `send` and `receive` are the states of the buffers before. The sender reads its own buffer,
    then the receive buffer in the other cache; the receiver reads that back, modified. A send
    buffer that is invalid comes from memory. `overhead` is O.
    """
    if receive == "invalid":
        # Its reader polls it, so it is still in a cache when the sender needs it.
        raise ValueError("receive: a buffer that is polled is in a cache, expected another state")
    if not simplified:
        return (
            costs.read("local", send) + costs.read("remote", receive)
            + costs.remote.modified + overhead
        )  # fmt: skip
    first = costs.R_I if send == "invalid" else costs.R_L
    return first + 2 * costs.R_R + overhead


def multi_line(costs: LineCosts, lines: int, state: str = "exclusive") -> float:
    """T_N: seconds to pass N lines, both buffers in one state (equation 2)."""
    return costs.transfer(lines, state)


def fit(lines: Sequence[int], seconds: Sequence[float]) -> MultiLine:
    """o, q and p of equation 2 by least squares of the relative error.

    Needs three different sizes; ValueError otherwise.
    """
    if len(set(lines)) < 3:
        raise ValueError(f"expected at least 3 sizes, got {len(set(lines))}")
    n = np.asarray(lines, dtype=float)
    t = np.asarray(seconds, dtype=float)
    terms = np.stack([n, np.ones_like(n), -1.0 / n], axis=1)
    (o, q, p), *_ = np.linalg.lstsq(terms / t[:, None], np.ones_like(t), rcond=None)
    return MultiLine(float(o), float(q), float(p))
