"""The fastest algorithm on the machine at hand, found by trying all of them in simulation."""

from __future__ import annotations

from pysmpi.collectives.call import OPERATIONS, Call
from pysmpi.collectives.registry import SELECTORS, Selector


def _fastest(call: Call) -> str:
    tuner = call.selection.tuner if call.selection is not None else None
    # Without a machine there are no trials.
    return "ompi5" if tuner is None else tuner.choose(call)


SELECTORS.add(
    Selector(
        "automatic",
        "the fastest on this machine, found by trying every algorithm in simulation",
        {op: _fastest for op in OPERATIONS if not op.startswith("neighbor")},
    )
)
