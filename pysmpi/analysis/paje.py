"""The use of links and hosts as variables of Paje's trace format, with SimGrid's names for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

# The events of the format, and their fields (Paje trace file, version 1.2.5).
_HEADER: Final = """\
%EventDef PajeDefineContainerType 0
% Alias string
% Type string
% Name string
%EndEventDef
%EventDef PajeDefineVariableType 1
% Alias string
% Type string
% Name string
% Color color
%EndEventDef
%EventDef PajeCreateContainer 2
% Time date
% Alias string
% Type string
% Container string
% Name string
%EndEventDef
%EventDef PajeDestroyContainer 3
% Time date
% Type string
% Name string
%EndEventDef
%EventDef PajeSetVariable 4
% Time date
% Type string
% Container string
% Value double
%EndEventDef
0 HOST 0 "HOST"
0 LINK 0 "LINK"
1 core_count HOST "core_count" "1 1 1"
1 cores_used HOST "cores_used" "0.5 0.5 0.5"
1 bandwidth LINK "bandwidth" "1 1 1"
1 bandwidth_used LINK "bandwidth_used" "0.5 0.5 0.5"
"""
# The type of the container, and its variables for the capacity and the use.
_VARIABLES: Final = {
    "host": ("HOST", "core_count", "cores_used"),
    "link": ("LINK", "bandwidth", "bandwidth_used"),
}


# The kind, the name, the capacity, and the amounts of equal intervals.
_Row = tuple[str, str, float, NDArray[np.float64]]


def paje_lines(used: Sequence[_Row], seconds: float) -> Iterator[str]:
    """The lines of a trace file of a run of so many seconds.

    `used` are links and hosts. Their variables are the capacity, and the amount a second in each
    interval; a value holds until the next one.
    """
    yield _HEADER
    changes: list[tuple[float, str]] = []
    for number, (kind, name, most, amounts) in enumerate(used):
        container, capacity, use = _VARIABLES[kind]
        name = name.replace('"', "'")
        yield f'2 0 c{number} {container} 0 "{name}"\n'
        yield f"4 0 {capacity} c{number} {most:.9g}\n"
        length = seconds / len(amounts)
        before = None
        for interval, amount in enumerate(amounts.tolist()):
            value = f"{amount / length:.9g}"
            if value != before:
                changes.append((interval * length, f"{use} c{number} {value}\n"))
                before = value
    changes.sort(key=lambda change: change[0])
    for time, change in changes:
        yield f"4 {time:.12g} {change}"
    for number, one in enumerate(used):
        yield f"3 {seconds:.12g} {_VARIABLES[one[0]][0]} c{number}\n"
