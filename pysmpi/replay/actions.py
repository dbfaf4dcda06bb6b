"""The actions of time-independent traces: their arguments, read strictly.

A `Reader` reads the words of an action; it has the file and the line for messages. The table at the
end has one function for each action. It returns the operations of the player (`Deed`s of the
kernel, or a collective call).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pysmpi.errors import UsageError
from pysmpi.replay.datatypes import BYTE, DOUBLE, SIZES
from pysmpi.text import whole


class Reader:
    """The words of one action after its name, read from left to right."""

    __slots__ = ("name", "number", "words", "at", "ranks", "default")

    def __init__(self, name: str, ranks: int) -> None:
        self.name = name  # of the file
        self.ranks = ranks
        self.number = 0
        self.words: list[str] = []
        self.at = 1
        self.default = SIZES[BYTE]

    def wrong(self, found: str, expected: str) -> UsageError:
        """The error of a line that is wrong."""
        return UsageError(
            f"{self.name}, line {self.number}: {' '.join(self.words[:1])}: expected {expected}, "
            f"got {found}"
        )

    def more(self) -> bool:
        """Whether there are words left."""
        return self.at < len(self.words)

    def word(self, what: str) -> str:
        """The next word."""
        if self.at >= len(self.words):
            raise self.wrong("the end of the line", what)
        word = self.words[self.at]
        self.at += 1
        return word

    def whole(self, what: str, least: int = 0, most: int = 1 << 53) -> int:
        """The next word as a whole number, which may be written `5e4`."""
        word = self.word(what)
        try:
            value = int(word)
        except ValueError:
            try:
                exact = float(word)
            except ValueError:
                exact = math.nan
            if exact != exact or exact in (math.inf, -math.inf) or exact != int(exact):
                raise self.wrong(repr(word), f"{what}, a whole number") from None
            value = int(exact)
        if not least <= value <= most:
            raise self.wrong(repr(word), f"{what} from {least} to {most}")
        return value

    def real(self, what: str) -> float:
        """The next word as a number that is not negative."""
        word = self.word(what)
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not 0.0 <= value < math.inf:
            raise self.wrong(repr(word), f"{what}, a number that is not negative")
        return value

    def rank(self, what: str) -> int:
        """The next word as the number of a rank."""
        return self.whole(what, 0, self.ranks - 1)

    def root(self) -> int:
        """The next word, if there is one, as the number of a rank; 0 if there is none."""
        return self.rank("a root") if self.more() else 0

    def size(self) -> int:
        """The bytes of an element of the datatype that the next word, if any, names."""
        if not self.more():
            return self.default
        word = self.word("a datatype")
        if word == "-1":
            return 0
        kind = whole(word)
        if kind is None or kind >= len(SIZES):
            raise self.wrong(f"datatype {word!r}", f"a number from 0 to {len(SIZES) - 1}")
        return SIZES[kind]

    def counts(self, what: str) -> list[int]:
        """One count for each rank."""
        return [self.whole(f"{what} of rank {rank}") for rank in range(self.ranks)]

    def end(self) -> None:
        """Raise an error for further words."""
        if self.more():
            raise self.wrong(
                repr(self.words[self.at]), f"the end of the line after {self.at - 1} arguments"
            )

    def begin(self, number: int, words: Sequence[str]) -> None:
        """Take the words of the next line."""
        self.number = number
        self.words = list(words)
        self.at = 1

    def choose_default(self) -> None:
        """The datatype of lines without a datatype, set by `init` and its argument, if any."""
        self.default = SIZES[DOUBLE if self.more() else BYTE]
        self.at += self.more()
