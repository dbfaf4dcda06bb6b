"""Code objects of each rank, as processes have them.

Python 3.11 and later adapt the instructions of a code object to the classes and modules that they
meet. Each rank has its own classes and modules. In a code object that ranks share, instructions
adapted to one rank are slow in all others: loops over methods take up to 1.7 times as long. So each
rank gets a copy of the program's code while compute is measured.
"""

from __future__ import annotations

import sys
from types import CodeType

MOST = 1 << 26  # bytes of the copies of one code object for all ranks


class OwnCode:
    """Copies code for each of `ranks` ranks; if these copies were too large, they share it."""

    def __init__(self, ranks: int) -> None:
        self._most = MOST // max(ranks, 1)

    def of(self, code: CodeType) -> CodeType:
        """The code that the running rank executes in place of `code`."""
        return copied(code) if size(code) <= self._most else code


def _nested(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]


def size(code: CodeType) -> int:
    """The bytes of a code object with those of its functions."""
    return sys.getsizeof(code) + sum(size(one) for one in _nested(code))


def copied(code: CodeType) -> CodeType:
    """A code object with the same text, and those of its functions, none of them adapted."""
    if not _nested(code):
        return code.replace()
    constants = (copied(one) if isinstance(one, CodeType) else one for one in code.co_consts)
    return code.replace(co_consts=tuple(constants))
