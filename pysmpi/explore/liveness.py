"""Variables whose values no later instruction of a function can use."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType

# Functions with which a program reads variables that its code does not name.
_READERS = frozenset(("locals", "globals", "vars", "eval", "exec", "dir", "__import__"))
_LEAVES = frozenset(
    ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "RETURN_GENERATOR")
)
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))
_ALWAYS = frozenset(("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"))
# Instructions for two variables, since Python 3.13, and which of these they store.
_PAIRS = {
    "LOAD_FAST_LOAD_FAST": (False, False),
    "STORE_FAST_LOAD_FAST": (True, False),
    "STORE_FAST_STORE_FAST": (True, True),
}
MOST_CODE = 500  # functions that are remembered


@lru_cache(maxsize=MOST_CODE)
def unused_after(code: CodeType) -> dict[int, frozenset[str]] | None:
    """The variables that are not used after an instruction, by its offset; None: not known.

    They are the local variables of a function, and the global ones of a module that none of its
    functions names.
    """
    if _READERS & set(code.co_names):
        return None
    module = code.co_name == "<module>"
    reads: tuple[str, ...] = ("LOAD_FAST",)
    writes: tuple[str, ...] = ("STORE_FAST", "DELETE_FAST")
    if module:
        inner = set(_names(code))
        names = frozenset(code.co_names) - inner
        reads, writes = ("LOAD_NAME", "LOAD_GLOBAL", "DELETE_NAME"), ("STORE_NAME",)
    else:
        names = frozenset(code.co_varnames)
    instructions = list(dis.get_instructions(code))
    at = {one.offset: i for i, one in enumerate(instructions)}
    following: list[list[int]] = []
    uses: list[frozenset[str]] = []
    sets: list[frozenset[str]] = []
    for i, one in enumerate(instructions):
        nexts = [] if one.opname in _LEAVES or one.opname in _ALWAYS else [i + 1]
        if one.opcode in _JUMPS:
            if one.argval not in at:
                return None
            nexts.append(at[one.argval])
        following.append([j for j in nexts if j < len(instructions)])
        known = isinstance(one.argval, str) and one.argval in names
        use = known and one.opname in reads
        write = known and one.opname in writes
        if known and not use and not write:
            if not one.opname.startswith(("LOAD_FAST", "LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR",
                                          "IMPORT", "KW_NAMES", "LOAD_CONST")):  # fmt: skip
                return None
            use = one.opname.startswith("LOAD_FAST")
        here = frozenset((one.argval,)) if known else frozenset()
        used, written = here if use else frozenset(), here if write else frozenset()
        if isinstance(one.argval, tuple) and "FAST" in one.opname:
            if one.opname not in _PAIRS:
                return None
            for stores, name in zip(_PAIRS[one.opname], one.argval):
                if stores:
                    written |= {name} & names
                elif name not in written:
                    used |= {name} & names
        uses.append(used)
        sets.append(written)
    # An exception goes to the handler of its instruction.
    for entry in dis._parse_exception_table(code):  # type: ignore[attr-defined]
        for i, one in enumerate(instructions):
            if entry.start <= one.offset < entry.end and entry.target in at:
                following[i].append(at[entry.target])
    live: list[frozenset[str]] = [frozenset()] * len(instructions)
    changed = True
    while changed:
        changed = False
        for i in range(len(instructions) - 1, -1, -1):
            after: set[str] = set()
            for j in following[i]:
                after |= live[j]
            after -= sets[i]
            after |= uses[i]
            if len(after) != len(live[i]):
                live[i] = frozenset(after)
                changed = True
    found: dict[int, frozenset[str]] = {}
    for i, one in enumerate(instructions):
        after = set()
        for j in following[i]:
            after |= live[j]
        # While it calls, an instruction may be in the entries of its cache.
        end = instructions[i + 1].offset if i + 1 < len(instructions) else one.offset + 2
        for offset in range(one.offset, end, 2):
            found[offset] = names - after
    return found


def _names(code: CodeType) -> Iterator[str]:
    """The names in the functions and classes of a module."""
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from one.co_names
            yield from one.co_freevars
            yield from _names(one)
