"""Minimising a chain: states that do the same at the same rates become one.

Two states may be in one class if, for every label and every class, they go there at the same total
rate (Markovian bisimulation, which is ordinary lumpability with labels). Classes are refined until
that holds, so the result is the smallest chain with the same throughput of every label.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pysmpi.memory.primitives.chain import Chain

# Rates are compared as integers; the largest has this number of digits.
_DIGITS = 15


def lump(chain: Chain, labels: NDArray[np.int64] | None = None) -> tuple[Chain, NDArray[np.int64]]:
    """The minimal chain, and the class of each state (int64, by state; class 0 has state 0).

    labels: the labels to distinguish, one for each transition (default: the chain's own labels).
    """
    told_apart = chain.label if labels is None else labels
    label = np.unique(told_apart, return_inverse=True)[1].astype(np.uint64)
    rate = _compared(chain.rate)
    classes = np.zeros(chain.states, np.int64)
    count = 1
    while True:
        signature = _signatures(chain, classes, label, rate)
        key = np.stack([classes.astype(np.uint64), *signature], axis=1)
        _, first, inverse = np.unique(key, axis=0, return_index=True, return_inverse=True)
        # Numbered by the first state of each, so that state 0 stays the initial one.
        number = np.empty(len(first), np.int64)
        number[np.argsort(first)] = np.arange(len(first))
        classes = number[inverse.reshape(-1)]
        if len(first) == count:
            return _quotient(chain, classes, count), classes
        count = len(first)


def _compared(rate: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Rates as integers relative to the largest, so that sums do not depend on their order."""
    scaled = np.rint(rate / rate.max(initial=1e-300) * 10.0**_DIGITS)
    return np.asarray(scaled, np.uint64)


def _mix(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread the bits of each number (the finaliser of splitmix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def _signatures(
    chain: Chain,
    classes: NDArray[np.int64],
    label: NDArray[np.uint64],
    rate: NDArray[np.uint64],
) -> list[NDArray[np.uint64]]:
    """Two hashes for each state of its total rates by label and class.

    A hash is the sum over transitions of rate times a random number of (label, class). It depends
    on the totals only, not on the single transitions.
    """
    goal = classes[chain.target].astype(np.uint64)
    sums = []
    for salt in (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03):
        key = _mix(_mix(label + np.uint64(salt)) + goal)
        total = np.zeros(chain.states, np.uint64)
        np.add.at(total, chain.source, key * rate)
        sums.append(total)
    return sums


def _quotient(chain: Chain, classes: NDArray[np.int64], size: int) -> Chain:
    """The chain of the classes, each leaving as its first state does."""
    _, first = np.unique(classes, return_index=True)
    chosen = np.zeros(chain.states, bool)
    chosen[first] = True
    kept = chosen[chain.source]
    return Chain(
        size,
        classes[chain.source[kept]],
        classes[chain.target[kept]],
        chain.rate[kept],
        chain.label[kept],
    )
