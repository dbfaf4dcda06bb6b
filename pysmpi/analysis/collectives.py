"""The price of collective calls at other numbers of ranks: their schedules, replayed there.

A library chooses algorithms by the number of ranks, so times of fewer ranks do not tell those of
more. The bytes of a call are known, or follow from their growth with the number of ranks; the
machine gives their time.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import Any, Final

from pysmpi.errors import UsageError
from pysmpi.replay import Replay
from pysmpi.trace.activity import RunActivity, SiteCollective
from pysmpi.trace.recorded_machine import machine_options

# Numbers of datatypes of time-independent traces, by their bytes.
_TYPES: Final = {8: 0, 4: 1, 2: 3, 16: 14, 1: 6}
_BYTE: Final = 6
# The words of an action: c for the count, r for the root, t for the datatype.
_ACTIONS: Final = {
    "barrier": "barrier",
    "bcast": "bcast {c} {r} {t}",
    "reduce": "reduce {c} 0 {r} {t}",
    "allreduce": "allreduce {c} 0 {t}",
    "alltoall": "alltoall {c} {c} {t} {t}",
    "gather": "gather {c} {c} {r} {t} {t}",
    "scatter": "scatter {c} {c} {r} {t} {t}",
    "allgather": "allgather {c} {c} {t} {t}",
    "scan": "scan {c} 0 {t}",
    "exscan": "exscan {c} 0 {t}",
}
_POWERS: Final = (0, -1, 1, -2, 2)  # powers of the number of ranks in which counts may grow
_SAME: Final = 0.02  # relative difference of counts that is rounding


def price(call: SiteCollective, count: float, ranks: int, machine: dict[str, Any]) -> float:
    """The seconds of one call on a machine, if all ranks enter at once."""
    size = call.type_size
    kind = _TYPES.get(size)
    items = round(count)
    if kind is None:
        kind, items = _BYTE, round(count * size)
    action = _ACTIONS[call.operation].format(c=items, r=call.root, t=kind)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "call.ti")
        with open(path, "w", encoding="utf-8") as stream:
            for rank in range(ranks):
                stream.write(f"{rank} init\n{rank} {action}\n{rank} finalize\n")
        return Replay([(path, 0.0)], **machine).run().seconds


def prices(runs: Sequence[RunActivity], name: str, ranks: int) -> list[float] | None:
    """The seconds of the calls of a site in each run, and with a number of ranks.

    None if they cannot be known: the site has several kinds of calls, or not as many in each run,
    or counts that follow no power of the number of ranks.
    """
    found = [run.collectives.get(name) for run in runs]
    calls = [one for one in found if one is not None]
    first = calls[0] if calls else None
    if first is None or len(calls) < len(runs) or first.operation not in _ACTIONS:
        return None
    kinds = {(one.operation, one.type_size, one.root, one.calls) for one in calls}
    if len(kinds) > 1 or not all(one.alike for one in calls):
        return None
    sizes = [run.ranks for run in runs]
    for power in _POWERS:
        scaled = [one.count * size**-power for one, size in zip(calls, sizes)]
        if max(scaled) - min(scaled) <= _SAME * max(scaled):
            break
    else:
        return None
    options = machine_options(runs[0].facts)
    counts = [*(one.count for one in calls), scaled[-1] * ranks**power]
    try:
        return [
            first.calls * price(first, count, size, options)
            for count, size in zip(counts, [*sizes, ranks])
        ]
    except UsageError as error:
        raise UsageError(f"extrapolate: {ranks} ranks on this machine: {error}") from None
