"""Send, receive and barrier as small programs over shared variables, and their costs in caches.

A program is written with the names below; `study` checks it, solves its Markov chain and
simulates it. See docs/papers/coherence.md.
"""

from pysmpi.memory.primitives.library import program
from pysmpi.memory.primitives.operations import (
    Operation,
    Program,
    Variable,
    acquire,
    compare_and_swap,
    enter,
    fetch_and_add,
    leave,
    load,
    mark,
    release,
    start,
    store,
    swap,
    test_and_set,
)

__all__ = [
    "Operation",
    "Program",
    "Variable",
    "acquire",
    "compare_and_swap",
    "enter",
    "fetch_and_add",
    "leave",
    "load",
    "mark",
    "program",
    "release",
    "start",
    "store",
    "swap",
    "test_and_set",
]
